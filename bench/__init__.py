"""Benchmarks: what the product costs, beside something else that does the same. Run with `make bench`.

Speed is said in ratios of interleaved runs on one machine, medians, the order reversed at each repetition; never in
a test. One module of `subject/` is one subject.
"""
