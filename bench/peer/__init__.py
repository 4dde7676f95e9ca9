"""The other queues, each a small program of two verbs: `fill URL ROWS` and `work URL BATCH` (see `crew.py`).

They run in environments of their own (`python -m bench.peer.install`), and use nothing of the product.
"""
