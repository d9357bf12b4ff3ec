"""Passwords hashed with a new salt each time, which no golden case can compare."""

from __future__ import annotations

import bcrypt
import pytest

from bellhop.gotemplate import Template, sprig_functions

FUNCTIONS = sprig_functions()
PASSWORDS = [
    pytest.param("secret", id="plain"),
    pytest.param("", id="empty"),
    pytest.param("пароль €", id="not ASCII"),
    pytest.param("a\0b", id="with a NUL"),
    pytest.param("x" * 72, id="as long as bcrypt reads"),
]


def render(text: str, password: str) -> str:
    return Template(text, funcs=FUNCTIONS).render({"password": password})


def test_the_library_knows_published_hashes() -> None:
    """What checks the tests below agrees with the vectors of the first implementation."""
    known = b"$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"

    assert bcrypt.checkpw(b"U*U", known)
    assert not bcrypt.checkpw(b"U*V", known)


@pytest.mark.parametrize("password", PASSWORDS)
def test_bcrypt_hashes_what_it_is_given(password: str) -> None:
    """The hash is of Go's version and cost, and holds the password and no other."""
    hashed = render("{{ bcrypt .password }}", password)

    assert hashed.startswith("$2a$10$")
    assert bcrypt.checkpw(password.encode(), hashed.encode())
    assert not bcrypt.checkpw(password.encode()[:-1] + b"?", hashed.encode())


def test_every_hash_has_a_salt_of_its_own() -> None:
    """One password hashed twice gives two hashes."""
    first, second = render("{{ bcrypt .password }} {{ bcrypt .password }}", "secret").split()

    assert first != second


@pytest.mark.parametrize("password", PASSWORDS)
def test_htpasswd_writes_a_line(password: str) -> None:
    """A line is the user, a colon and the password's hash."""
    user, _, hashed = render('{{ htpasswd "ada" .password }}', password).partition(":")

    assert user == "ada"
    assert bcrypt.checkpw(password.encode(), hashed.encode())


def test_a_password_that_is_too_long_is_said_to_be() -> None:
    """Longer than bcrypt reads is sprig's sentence, not a hash of the beginning."""
    said = render("{{ bcrypt .password }}", "x" * 73)

    assert said == (
        "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes"
    )
