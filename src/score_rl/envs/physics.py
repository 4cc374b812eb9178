"""The physics that D4RL's v2 data were recorded with (MuJoCo 2.0), restored on today's MuJoCo.

Two things have changed since. A capsule then had the mass and inertia of a cylinder whose height is
2·half_length + radius; and from MuJoCo 3.5.0 on the margins of two touching geoms add up, where before the
larger one counted. `docs/data.md` holds the measured difference from genuine recordings.
"""

import re
from importlib import resources
from typing import Any

import mujoco
import numpy as np

from score_rl.envs.tasks import Task

DENSITY = 1000.0  # MuJoCo's default, which the three models keep
MARGINS_ADD_UP_SINCE = (3, 5)


def load_model(task: Task, physics: str) -> Any:
    """The task's MuJoCo model from Gymnasium's assets, with D4RL's physics or left as it is ("stock")."""
    asset = resources.files("gymnasium") / "envs" / "mujoco" / "assets" / task.model_file
    # Newer versions write a warning file into the working folder for this attribute, so the mass is set
    # below.
    xml = re.sub(r'\ssettotalmass="[^"]*"', "", asset.read_text(encoding="utf-8"))
    model = mujoco.MjModel.from_xml_string(xml)
    if physics == "d4rl":
        restore_d4rl_physics(model)
    # A robot is one kinematic tree, so its constraints are one island: nothing changes but the time to find that out.
    model.opt.disableflags |= getattr(mujoco.mjtDisableBit, "mjDSBL_ISLAND", 0)
    if task.total_mass is not None:
        mujoco.mj_setTotalmass(model, task.total_mass)
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def restore_d4rl_physics(model: Any) -> None:
    """Give every body its inertia of old and every geom its margin of old; changes `model`, whose constants
    (`mj_setConst`) are then to be computed again."""
    for body in range(1, model.nbody):
        geoms = np.flatnonzero(model.geom_bodyid == body)
        _set_inertia(model, body, [_capsule_of_old(model, int(geom)) for geom in geoms])
    if _mujoco_version() >= MARGINS_ADD_UP_SINCE:
        model.geom_margin[:] *= 0.5


def _mujoco_version() -> tuple[int, int]:
    major, minor = mujoco.__version__.split(".")[:2]
    return int(major), int(minor)


def _capsule_of_old(model: Any, geom: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre and inertia about the centre, of a capsule taken as a cylinder longer by one radius."""
    if model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_CAPSULE:
        raise ValueError(f"geom {geom} is not a capsule: D4RL's physics is known for capsules only")
    radius, half_length = model.geom_size[geom][:2]
    height = 2.0 * half_length + radius
    mass = DENSITY * np.pi * radius**2 * height
    across = mass * (3.0 * radius**2 + height**2) / 12.0
    along = mass * radius**2 / 2.0
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, model.geom_quat[geom])
    axes = rotation.reshape(3, 3)
    return mass, model.geom_pos[geom].copy(), axes @ np.diag([across, across, along]) @ axes.T


def _set_inertia(model: Any, body: int, parts: list[tuple[float, np.ndarray, np.ndarray]]) -> None:
    """Sum the parts about their common centre (parallel axes) and store the principal axes in `model`."""
    mass = sum(part[0] for part in parts)
    centre = np.sum([m * c for m, c, _ in parts], axis=0) / mass
    inertia = np.zeros((3, 3))
    for part_mass, part_centre, part_inertia in parts:
        offset = part_centre - centre
        inertia += part_inertia + part_mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    moments, axes = np.linalg.eigh(inertia)
    moments, axes = moments[::-1], axes[:, ::-1].copy()  # MuJoCo orders principal moments from large to small
    if np.linalg.det(axes) < 0:
        axes[:, 2] *= -1.0
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, axes.flatten())
    model.body_mass[body] = mass
    model.body_ipos[body] = centre
    model.body_iquat[body] = quaternion
    model.body_inertia[body] = moments
