"""template.yaml, read as CloudFormation reads it, with the values it would have in each stage."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import yaml

from tests.project.sources import ROOT

Node = dict[str, Any]
STAGES = sorted(file.stem for file in (ROOT / "stages").glob("*.yaml"))


class Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms, which are kept as what they are applied to."""


def _short_form(loader: Loader, tag: str, node: yaml.Node) -> Any:
    match node:
        case yaml.ScalarNode():
            return {tag: loader.construct_scalar(node)}
        case yaml.SequenceNode():
            return {tag: loader.construct_sequence(node, deep=True)}
        case yaml.MappingNode():
            return {tag: loader.construct_mapping(node, deep=True)}


Loader.add_multi_constructor("!", _short_form)


@cache
def template() -> Node:
    loaded: Node = yaml.load((ROOT / "template.yaml").read_text(), Loader)
    return loaded


def of_type(kind: str) -> dict[str, Node]:
    """The properties of all resources of a type, by name."""
    resources = template()["Resources"].items()
    return {name: one.get("Properties", {}) for name, one in resources if one["Type"] == kind}


def functions() -> dict[str, Node]:
    return of_type("AWS::Serverless::Function")


def variables(function: Node) -> Node:
    shared = template()["Globals"]["Function"]["Environment"]["Variables"]
    return {**shared, **function.get("Environment", {}).get("Variables", {})}


@cache
def given(stage: str | None) -> Mapping[str, str]:
    """What each parameter is in a stage; None: the defaults."""
    defaults = {
        name: one["Default"] for name, one in template()["Parameters"].items() if "Default" in one
    }
    own = yaml.safe_load((ROOT / "stages" / f"{stage}.yaml").read_text()) if stage else {}
    joined = {name: ",".join(one) if isinstance(one, list) else one for name, one in own.items()}
    return {name: str(value) for name, value in {**defaults, **joined}.items()}


def value(node: Any, stage: str | None) -> str:
    """A scalar as it would be deployed: itself, a parameter, or a look into a mapping."""
    match node:
        case {"Ref": str(name)}:
            return given(stage)[name]
        case {"FindInMap": [str(mapping), key, str(second)]}:
            return str(template()["Mappings"][mapping][value(key, stage)][second])
        case {"If": _}:
            raise TypeError(f"a condition is no plain value: {node}")
        case _:
            return str(node)


def every(node: Any) -> Iterator[Any]:
    """The node and all that is in it."""
    yield node
    inside = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for one in inside:
        yield from every(one)


def named(node: Any) -> set[str]:
    """The parameters and resources that a node refers to."""
    found: set[str] = set()
    for one in every(node):
        match one:
            case {"Ref": str(name)}:
                found.add(name)
            case {"GetAtt": str(name)}:
                found.add(name.split(".")[0])
            case {"Sub": str(text)} | {"Sub": [str(text), *_]}:
                found |= {
                    inner.split(".")[0] for inner in re.findall(r"\$\{([A-Za-z0-9.]+)\}", text)
                }
    return found
