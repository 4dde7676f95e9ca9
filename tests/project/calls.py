"""The calls to AWS that each function can make, found in the code it reaches from its entry in the composition root.

Reached is what is named: in bootstrap function by function, elsewhere module by module. More than is true, never less.
"""

import ast
from collections.abc import Iterator
from functools import cache

import botocore.session
from botocore import xform_name

from tests.project.sources import Source, imports, product

ROOT_MODULE = "fencepost.bootstrap"
NO_OPERATION = {  # calls that are no method of a client
    "generate_db_auth_token": {"rds-db:connect"},  # signed here, allowed where it is used
    "SecretsProvider": {"secretsmanager:GetSecretValue"},
    "SSMProvider": {"ssm:GetParameter"},
    "Ses": {"ses:SendEmail", "ses:SendRawEmail"},  # over our own transport
    "Sns": {"sns:Publish"},
    "AwsSms": {"sms-voice:SendTextMessage"},
}
ACTIONS = {  # where the action is not called like the operation
    ("sqs", "SendMessageBatch"): {"sqs:SendMessage"},
    ("s3", "HeadObject"): {"s3:GetObject"},
    ("s3", "GetObject"): {"s3:GetObject", "s3:GetObjectVersion"},  # a command may name a version
}


def actions_of(entry: str) -> set[str]:
    """The IAM actions that the calls behind one function of bootstrap need."""
    nodes, modules = reached(entry)
    trees = [*nodes, *(source.tree for source in product() if source.module in modules)]
    return {action for tree in trees for action in _actions(tree)}


def reached(entry: str) -> tuple[list[ast.AST], set[str]]:
    """What of bootstrap is used, and the modules of ours behind it."""
    (root,) = (source for source in product() if source.module == ROOT_MODULE)
    own = {
        node.name: node
        for node in root.tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    names, found = [entry], {entry}
    while names:
        used = {one.id for one in ast.walk(own[names.pop()]) if isinstance(one, ast.Name)}
        new = (used & set(own)) - found
        found |= new
        names.extend(new)
    nodes: list[ast.AST] = [own[name] for name in sorted(found)]
    return nodes, _closure(_imported(root.tree, nodes))


def _imported(tree: ast.Module, nodes: list[ast.AST]) -> set[str]:
    """Modules whose names these nodes use, imported above or inside."""
    used = {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}
    inside = [one for node in nodes for one in ast.walk(node) if isinstance(one, ast.ImportFrom)]
    above = [one for one in tree.body if isinstance(one, ast.ImportFrom)]
    whole = {one.module for one in inside if one.module}
    return whole | {
        one.module for one in above if one.module and used & {name.name for name in one.names}
    }


def _closure(modules: set[str]) -> set[str]:
    by_name = {source.module: source for source in product()}
    open_, found = [one for one in modules if one in by_name], set[str]()
    while open_:
        module = open_.pop()
        found.add(module)
        open_.extend(one for one in _behind(by_name[module], by_name) if one not in found)
    return found


def _behind(source: Source, by_name: dict[str, Source]) -> Iterator[str]:
    for node in ast.walk(source.tree):  # a module that is imported by its name, when it is wanted
        if isinstance(node, ast.Constant) and node.value in by_name:
            yield str(node.value)
    for one in imports(source):
        for name in (one.module, one.module.rpartition(".")[0]):
            if name in by_name and name != ROOT_MODULE and not one.for_types:
                yield name


def _actions(tree: ast.AST) -> Iterator[str]:
    services = {
        str(argument.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "client"
        for argument in node.args[:1]
        if isinstance(argument, ast.Constant)
    }
    for node in ast.walk(tree):
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if name in NO_OPERATION:
            yield from NO_OPERATION[name]
        for service in services:
            if operation := _operations(service).get(name):
                yield from ACTIONS.get((service, operation), {f"{service}:{operation}"})


@cache
def _operations(service: str) -> dict[str, str]:
    """Method of a client → operation."""
    model = botocore.session.get_session().get_service_model(service)
    return {xform_name(operation): operation for operation in model.operation_names}
