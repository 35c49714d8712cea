"""`kernel.torch_op`: a kernel as an operator of PyTorch, which autograd and torch.compile know.

An operator has no outputs among its arguments: it returns them. What a nest writes is made by each call; if the results
depend on what an array holds before, as for `C[i, j] += …`, the operator takes the array too, and returns a new one.

(PyTorch, "Custom Python Operators", the manual of `torch.library`.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

from codegen.errors import ArgumentError
from codegen.ir.program import Buffer
from codegen.ir.signature import Signature, SolvedSize
from microkernels.cached import cached_property
from microkernels.errors import shown
from poly.analysis.initial import keeps_initial
from poly.errors import SpecError
from poly.ir.nest import Nest
from poly.lowering.arguments import signature

New = Callable[[Buffer, tuple[Any, ...], bool], Any]
"""Makes an array for a buffer, of a shape, filled with zeros or not."""

Call = Callable[..., None]
"""A kernel or a nest, called on arrays that it updates in place."""

NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*", re.ASCII)

GRADIENT = "d"
"""`dX` is the gradient with respect to `X`."""


@dataclass(frozen=True)
class Operator:
    """A kernel as a function of its inputs, which returns its outputs.

    `signature` has the arguments of `call`. The outputs in `kept` matter by what they hold before, and are inputs too;
    those in `zeroed` are 0 before.
    """

    signature: Signature
    call: Call
    kept: frozenset[str]
    zeroed: frozenset[str] = frozenset()

    @staticmethod
    def of(nest: Nest, signature: Signature, call: Call) -> Operator:
        written = (buffer.name for buffer in signature.outputs)
        return Operator(signature, call, frozenset(name for name in written if keeps_initial(nest, name)))

    def started_at_zero(self, names: frozenset[str]) -> Operator:
        """The same function, but with these outputs 0 before the call, if what they hold then matters."""
        return replace(self, kept=self.kept - names, zeroed=self.kept & names)

    @cached_property
    def inputs(self) -> tuple[Buffer, ...]:
        """What a call takes: arrays that are read, scalars, and outputs whose values before matter."""
        made = {b.name for b in self.signature.outputs} - self.kept
        return tuple(b for b in self.signature.buffers if b.name not in made)

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        return self.signature.outputs

    @cached_property
    def sizes(self) -> tuple[str, ...]:
        """The sizes that no input tells, which a call takes behind the inputs."""
        return tuple(size for size in self.signature.sizes if size not in {step.size for step in self._solved})

    @cached_property
    def _solved(self) -> tuple[SolvedSize, ...]:
        known = Signature(self.signature.name, self.signature.sizes, self.inputs)
        return known.solved

    @property
    def schema(self) -> str:
        """The arguments and results in PyTorch's notation: `(Tensor A, float alpha, SymInt T) -> Tensor`."""
        sizes = [f"SymInt {size}" for size in self.sizes]
        results = ", ".join("Tensor" for _ in self.outputs)
        taken = ", ".join([*(f"{_kind(b)} {b.name}" for b in self.inputs), *sizes])
        return f"({taken}) -> {results if len(self.outputs) == 1 else f'({results})'}"

    def shapes(self, arguments: Sequence[Any]) -> dict[str, tuple[Any, ...]]:
        """The shape of each output for these inputs and sizes; extents may be symbols."""
        given = dict(zip((*(b.name for b in self.inputs), *self.sizes), arguments, strict=True))
        values: dict[str, Any] = {size: given[size] for size in self.sizes}
        for step in self._solved:
            extent = given[step.array].shape[step.dimension]
            values[step.size] = (extent - step.rest.evaluate(values)) // step.coefficient
        return {b.name: tuple(extent.evaluate(values) for extent in b.shape) for b in self.outputs}

    def run(self, arguments: Sequence[Any], new: New) -> tuple[Any, ...]:
        """The outputs for these inputs and sizes."""
        names = [b.name for b in self.inputs]
        values = dict(zip(names, arguments, strict=False))
        sizes = dict(zip(self.sizes, arguments[len(names) :], strict=True))
        shapes = self.shapes(arguments)
        made = {
            b.name: values[b.name].clone() if b.name in self.kept else new(b, shapes[b.name], b.name in self.zeroed)
            for b in self.outputs
        }
        values |= made
        given = {size: sizes[size] for size in self.signature.given}
        self.call(*(values[b.name] for b in self.signature.buffers), **given)
        return tuple(made.values())


def _kind(buffer: Buffer) -> str:
    if buffer.kind != "scalar":
        return "Tensor"
    return "float" if buffer.dtype.is_float else "int"


@dataclass(frozen=True)
class Backward:
    """The operator of the gradients, and where its arguments and results belong.

    `saved` are the inputs that are arguments or results of the forward operator, `given` all inputs and sizes in order,
    and `gradients` the outputs.
    """

    operator: Operator
    forward: Operator

    @staticmethod
    def of(operator: Operator, forward: Operator) -> Backward:
        """Raises SpecError if an argument is neither the forward operator's nor a gradient."""
        inputs, outputs = (
            {b.name for b in buffers if b.kind != "scalar"} for buffers in (forward.inputs, forward.outputs)
        )
        known = {*(b.name for b in forward.inputs), *outputs}
        written = {b.name for b in operator.outputs}
        name = operator.signature.name
        for buffer in operator.signature.buffers:
            own = buffer.name.removeprefix(GRADIENT)
            if buffer.name in known and buffer.name not in written:
                continue
            if own == buffer.name or own not in (inputs if buffer.name in written else outputs):
                expected = (
                    f"the arrays and scalars of {forward.signature.name} ({', '.join(sorted(known))}), which it reads"
                )
                raise SpecError(
                    f"{name} is no backward nest of {forward.signature.name}: it has {buffer.name}. Such a nest has "
                    f"{expected}; {GRADIENT}Y for the gradient of a result Y, which it reads; and {GRADIENT}X for "
                    "that of an input X, which it writes."
                )
        lost = [size for size in operator.sizes if size not in forward.signature.sizes]
        if lost:
            raise SpecError(
                f"no array that {name} reads tells its size {lost[0]}, and {forward.signature.name} has none."
            )
        sums = frozenset(GRADIENT + b.name for b in forward.inputs) - {GRADIENT + kept for kept in forward.kept}
        return Backward(operator.started_at_zero(sums), forward)

    @cached_property
    def gradients(self) -> dict[str, int]:
        """For each input that has a gradient, the position of this gradient among the results."""
        return {b.name.removeprefix(GRADIENT): place for place, b in enumerate(self.operator.outputs)}

    @cached_property
    def saved(self) -> tuple[str, ...]:
        """The arrays of the forward operator that the gradients need; of one that it changes, the result."""
        known = {b.name for b in (*self.forward.inputs, *self.forward.outputs) if b.kind != "scalar"}
        return tuple(b.name for b in self.operator.inputs if b.name in known)

    def arguments(self, values: Mapping[str, Any], results: Sequence[Any]) -> list[Any]:
        """The inputs and sizes, from the forward operator's values by name, and the gradients of its results."""
        gradients = {GRADIENT + b.name: result for b, result in zip(self.forward.outputs, results, strict=True)}
        everything = gradients | dict(values)
        return [everything[name] for name in (*(b.name for b in self.operator.inputs), *self.operator.sizes)]

    def in_order(self, found: Sequence[Any], needed: Sequence[bool]) -> tuple[Any, ...]:
        """For each input and size of the forward operator, its gradient or None. Raises ArgumentError if one lacks."""
        names = (*(b.name for b in self.forward.inputs), *self.forward.sizes)
        for name, wanted in zip(names, needed, strict=True):
            if wanted and name not in self.gradients:
                own = self.operator.signature.name
                raise ArgumentError(
                    f"{name} requires a gradient, and the backward nest {own} writes no {GRADIENT}{name}. "
                    f"Remedy: {name}.detach(), or a {own} that writes it"
                )
        return tuple(found[self.gradients[name]] if name in self.gradients else None for name in names)


def registered(name: str, forward: Operator, backward: Operator | None) -> Any:
    """The operator, registered with PyTorch as `namespace::name`, and its gradients as `namespace::name_backward`.

    Raises:
        ArgumentError: the name is not of this form, or PyTorch is not installed.
        SpecError: the backward nest does not fit.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ArgumentError(f"the name of an operator is 'namespace::name', not {shown(name)}")
    gradients = None if backward is None else Backward.of(backward, forward)
    try:
        torch: Any = import_module("torch")
    except ImportError as error:
        raise ArgumentError(f"torch_op needs PyTorch, which cannot be imported: {error}") from error
    made = _operator(torch, name, forward)
    if gradients is not None:
        _differentiable(torch, made, gradients, _operator(torch, f"{name}_backward", gradients.operator))
    return made


def _operator(torch: Any, name: str, operator: Operator) -> Any:
    def new(buffer: Buffer, shape: tuple[Any, ...], zero: bool) -> Any:
        make = torch.zeros if zero else torch.empty
        return make(shape, dtype=getattr(torch, buffer.dtype.numpy_name))

    def run(*arguments: Any) -> Any:
        return _results(operator.run([_plain(torch, argument) for argument in arguments], new))

    def shaped(*arguments: Any) -> Any:
        shapes = operator.shapes(arguments)
        return _results(tuple(new(b, shapes[b.name], False) for b in operator.outputs))

    made = torch.library.custom_op(name, run, mutates_args=(), device_types="cpu", schema=operator.schema)
    made.register_fake(shaped)
    return made


def _results(found: tuple[Any, ...]) -> Any:
    return found[0] if len(found) == 1 else found


def _plain(torch: Any, argument: Any) -> Any:
    """A tensor as a kernel takes it: contiguous, and of no interest to autograd, which looks at the operator."""
    return argument.detach().resolve_neg().contiguous() if isinstance(argument, torch.Tensor) else argument


def _differentiable(torch: Any, made: Any, gradients: Backward, operator: Any) -> None:
    forward = gradients.forward

    def save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        values = dict(zip((*(b.name for b in forward.inputs), *forward.sizes), inputs, strict=True))
        ctx.numbers = {name: value for name, value in values.items() if not isinstance(value, torch.Tensor)}
        results = output if isinstance(output, tuple | list) else (output,)
        values |= dict(zip((b.name for b in forward.outputs), results, strict=True))
        ctx.save_for_backward(*(values[name] for name in gradients.saved))

    def backward(ctx: Any, *results: Any) -> tuple[Any, ...]:
        values = ctx.numbers | dict(zip(gradients.saved, ctx.saved_tensors, strict=True))
        found = operator(*gradients.arguments(values, results))
        return gradients.in_order(found if isinstance(found, tuple | list) else (found,), ctx.needs_input_grad)

    made.register_autograd(backward, setup_context=save)


def operator(made: Any) -> Operator:
    """The function that a kernel, or a nest that can be called, computes. Raises SpecError for anything else."""
    nest = made if isinstance(made, Nest) else getattr(made, "nest", None)
    if not isinstance(nest, Nest) or not callable(made):
        raise SpecError(f"{shown(made)} is no nest and no kernel, which compute the gradients.")
    found = made.signature if made is not nest else signature(nest)
    return Operator.of(nest, found, made)
