"""What a send costs by each provider: ours alone, a hundred in flight, against servers that answer as they do."""

import os
import sys
from pathlib import Path
from statistics import median

from bench.aws_caller import IN_FLIGHT
from bench.crew import Crew
from bench.kinds import examples
from bench.kinds_provider import ANSWER_MS
from bench.plan import Plan
from bench.subject.aws import Called
from bench.subject.sends import CLIENT_CORE, provider
from bench.table import Table, number

SENDS = 8_000
MAILS = 2_000  # a tenth as fast


def measure(plan: Plan) -> list[Table]:
    rows = []
    for kind, example in examples().items():
        is_mail = example.protocol == "smtp"
        count = plan.rows(MAILS if is_mail else SENDS)
        module = "bench.mail_provider" if is_mail else "bench.kinds_provider"
        with provider(example.protocol, module) as (folder, url):
            taken = [_called(folder, url, kind, count) for _ in range(plan.repeats)]
        rows.append(
            (
                kind,
                example.protocol,
                number(median(one.rate for one in taken)),
                f"{median(one.cpu_ms for one in taken):.3f}",
            )
        )
    return [
        Table(
            title=f"Sends by each kind, {IN_FLIGHT} in flight, {ANSWER_MS} ms answers",
            columns=("kind", "protocol", "sends/s", "CPU ms/send"),
            rows=rows,
            notes=(
                "The sender alone: payload rendered, digested, signed or encrypted, sent over TLS and classified, on "
                f"one core; the server on the other. Ideal: {IN_FLIGHT * 1000 // ANSWER_MS:,} sends/s.",
                "SMTP: a connection, a STARTTLS handshake and a session for each mail, as the sender does it.",
                "SES and SNS: the subject `aws`.",
            ),
        )
    ]


def _called(folder: Path, url: str, kind: str, count: int) -> Called:
    arguments = [kind, url, str(count), str(CLIENT_CORE)]
    environment = {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "SSL_CERT_FILE": str(folder / "ca.pem"),
    }
    with Crew([[sys.executable, "-m", "bench.kinds_caller", *arguments]], environment) as crew:
        crew.await_ready()
        crew.say("go")
        (told,) = crew.results()
    return Called(rate=count / (told["ended"] - told["began"]), cpu_ms=told["cpu"] / count * 1000)
