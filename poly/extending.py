"""What poly is extended by, from outside of it: each part is registered here, or offered by an entry point.

    register_step        a step of schedules                  poly.steps
    register_rule        a rule of the space                  poly.rules
    register_strategy    a search strategy                    poly.strategies
    register_isa         an instruction set                   poly.isas
    register_target      a target                             poly.targets
    poly.microkernel     a microkernel                        poly.microkernels
    a peer of poly bench, a command of poly                   poly.peers, poly.commands

`docs/extending.md` has a section for each, with its protocol.
"""

from __future__ import annotations

from microkernels.isa import ISA
from microkernels.isa import register as register_isa
from poly.autoschedule.rules.form import Form
from poly.autoschedule.rules.own import Rule
from poly.autoschedule.rules.own import register as register_rule
from poly.autoschedule.spaces.space import Knob
from poly.ir.edits import edit, find_loop, map_functions
from poly.machine.targets import OwnTarget
from poly.machine.targets import register as register_target
from poly.schedules.steps import Step, register_step
from poly.search.strategies import register as register_strategy

__all__ = [
    "ISA",
    "Form",
    "Knob",
    "OwnTarget",
    "Rule",
    "Step",
    "edit",
    "find_loop",
    "map_functions",
    "register_isa",
    "register_rule",
    "register_step",
    "register_strategy",
    "register_target",
]
