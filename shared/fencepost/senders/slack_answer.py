"""What Slack's Web API means by its answers. Pure.

Sources: docs.slack.dev, *chat.postMessage* (its errors), *Rate limits* (429 with Retry-After). Nearly every answer is a
200, and `error` says what it is. `internal_error` and `fatal_error`: "it's possible some aspect of the operation
succeeded". `request_timeout`: "the POST data was either missing or truncated". Not documented, and so not relied on: a
repeat dropped by `client_msg_id` (slackapi/slack-api-specs#10 is open).
"""

from fencepost.core.outcome import (
    CredentialFailure,
    Delivered,
    Failed,
    Outcome,
    Rejected,
    Throttled,
    Uncertain,
    Unregistered,
)
from fencepost.core.reply import Reply
from fencepost.senders.answer import read_object, reference_of
from fencepost.senders.retry_after import retry_after_seconds
from fencepost.senders.unanswered import unanswered

THROTTLED = {"ratelimited", "rate_limited", "message_limit_exceeded"}
GONE = {"is_archived", "user_not_found", "user_disabled"}
# The token of another workspace, or an app nobody has invited yet, is answered the same way.
GONE_OR_ELSEWHERE = {
    "channel_not_found",
    "not_in_channel",
    "restricted_action",
    "restricted_action_non_threadable_channel",
    "restricted_action_read_only_channel",
    "restricted_action_thread_only_channel",
    "restricted_action_thread_locked",
    "posting_to_general_channel_denied",
}
CREDENTIALS = {
    "access_denied",
    "accesslimited",
    "account_inactive",
    "as_user_not_supported",
    "deprecated_endpoint",
    "ekm_access_denied",
    "enterprise_is_restricted",
    "invalid_auth",
    "method_deprecated",
    "missing_scope",
    "no_permission",
    "not_allowed_token_type",
    "not_authed",
    "org_login_required",
    "team_access_not_granted",
    "token_expired",
    "token_revoked",
    "two_factor_setup_required",
}
REJECTED = {
    "attachment_payload_limit_exceeded",
    "block_mismatch",
    "cannot_reply_to_message",
    "duplicate_channel_not_found",
    "duplicate_message_not_found",
    "invalid_arg_name",
    "invalid_arguments",
    "invalid_array_arg",
    "invalid_attachments",
    "invalid_blocks",
    "invalid_blocks_format",
    "invalid_charset",
    "invalid_form_data",
    "invalid_metadata_format",
    "invalid_metadata_schema",
    "invalid_post_type",
    "message_limit_size_exceeded",
    "metadata_must_be_sent_from_app",
    "metadata_too_large",
    "missing_post_type",
    "msg_blocks_too_long",
    "msg_too_long",
    "no_text",
    "slack_connect_canvas_sharing_blocked",
    "slack_connect_clip_sharing_blocked",
    "slack_connect_file_link_sharing_blocked",
    "thread_not_found",
    "too_many_attachments",
    "too_many_contact_cards",
}
UNPROCESSED = {"request_timeout", "service_unavailable", "team_added_to_org"}
MAYBE = {"fatal_error", "internal_error"}


def meaning_of(reply: Reply) -> Outcome:
    """The answer to a message."""
    if (outcome := unanswered(reply)) is not None:
        return outcome
    answer, status = read_object(reply.body), reply.status or 0
    wait = retry_after_seconds(reply.headers.get("retry-after"), date=reply.headers.get("date"))
    if answer.get("ok") is True:
        if not 200 <= status < 300:
            return Uncertain(f"answered {status}, and its body says otherwise")
        return Delivered(reference_of(answer.get("ts")))
    if "error" in answer:
        known = _error(str(answer["error"]), wait)
        if known is not None and status != 429:
            return known
    return _status(status, wait, readable=bool(answer))


def _error(code: str, wait: float | None) -> Outcome | None:
    reason = f"answered {code}"
    if code in THROTTLED:
        return Throttled(reason, wait)
    if code in GONE or code in GONE_OR_ELSEWHERE:
        return Unregistered(reason, guarded=code in GONE_OR_ELSEWHERE)
    if code in CREDENTIALS:
        return CredentialFailure(reason)
    if code in REJECTED:
        return Rejected(reason)
    if code in UNPROCESSED:
        return Failed(reason, wait)
    if code in MAYBE:
        return Uncertain(reason, wait)
    return None


def _status(status: int, wait: float | None, *, readable: bool) -> Outcome:
    """Where the error says nothing we know."""
    reason = f"answered {status}"
    if status == 429:
        return Throttled(reason, wait)
    if status >= 500:
        return Uncertain(reason, wait)
    if 200 <= status < 300:
        refused = Failed("refused with an error that is not documented", wait)
        return refused if readable else Uncertain("accepted or not: the answer cannot be read")
    if status in (401, 403, 404):
        return CredentialFailure(f"{reason} without an error: is the endpoint Slack's?")
    return Failed(reason, wait)
