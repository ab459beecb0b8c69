"""The Literal types contain exactly the names that the library has."""

import typing

import pytest

import shmlimit
from shmlimit import _shmlimit


@pytest.mark.parametrize("name", sorted(_shmlimit.known_names()))
def test_a_type_has_exactly_the_names_of_the_library(name):
    assert sorted(typing.get_args(getattr(shmlimit, name))) == sorted(_shmlimit.known_names()[name])


def test_every_type_of_names_is_compared():
    literals = {name for name in shmlimit.__all__ if typing.get_origin(getattr(shmlimit, name)) is typing.Literal}
    assert literals == set(_shmlimit.known_names())


def test_names_are_accepted_and_returned_as_the_types_say(directory):
    limiter = shmlimit.Limiter("tmdb")
    for priority in typing.get_args(shmlimit.Priority):
        limiter.try_acquire(priority=priority).release()
    for error in typing.get_args(shmlimit.NetError):
        assert limiter.record(error=error).outcome_class in typing.get_args(shmlimit.OutcomeClass)
    commands = set(typing.get_args(shmlimit.BreakerCommand)) - {"closed", "open"}  # commands of the other kind of breaker
    for command in commands:
        for transition in limiter.force(command):
            assert transition.to_state in typing.get_args(shmlimit.BreakerState)
            assert transition.reason in typing.get_args(shmlimit.TransitionCause)
