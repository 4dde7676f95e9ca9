"""SQS records: each is one command of a backfill, and fails alone."""

from typing import Any

from fencepost.bootstrap import backfill


def handler(event: dict[str, Any], context: Any) -> Any:
    """Do what each record says; those that must come back are named in the answer (ReportBatchItemFailures)."""
    from aws_lambda_powertools.utilities.batch import (
        BatchProcessor,
        EventType,
        process_partial_response,
    )

    given = event["Records"]
    remaining_seconds = context.get_remaining_time_in_millis() / 1000
    records = backfill(given, remaining_seconds=remaining_seconds)
    batch = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
    with records:
        answer = process_partial_response({"Records": records.in_order(given)}, records.take, batch)
    records.tell(batch.exceptions)
    return answer
