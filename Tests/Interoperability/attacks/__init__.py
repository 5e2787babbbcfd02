"""The table of attacks, by group."""
from attacks import (
    bodies, cookies, devices, fields, forms, genuine, neighbours, pipelines, pointers, preflights, spelling,
)

ATTACKS = [
    attack
    for module in [
        genuine, bodies, spelling, fields, forms, pipelines, neighbours, preflights, devices,
        cookies, pointers,
    ]
    for attack in module.ATTACKS
]
GROUPS = list(dict.fromkeys(attack.group for attack in ATTACKS))
