"""What CloudFormation would be given: `SAM_PYTHON translate.py TEMPLATE NAME=VALUE…` prints the translated template.

Runs in SAM's own virtualenv, with the translator that the service runs.
"""

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")

from samcli.yamlhelper import yaml_parse  # type: ignore[import-not-found]
from samtranslator.translator.transform import transform  # type: ignore[import-not-found]


class NoPolicies:
    """Managed policies by name: none of ours has one."""

    def load(self) -> dict[str, str]:
        return {}


if __name__ == "__main__":
    given = dict(word.split("=", 1) for word in sys.argv[2:])
    template = yaml_parse(Path(sys.argv[1]).read_text())
    for resource in template["Resources"].values():  # a package has them in S3
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"]["CodeUri"] = "s3://bucket/code.zip"
        if resource["Type"] == "AWS::Serverless::LayerVersion":
            resource["Properties"]["ContentUri"] = f"s3://bucket/{given.get('Layer', 'layer')}.zip"
    given.pop("Layer", None)
    print(json.dumps(transform(template, given, NoPolicies())))
