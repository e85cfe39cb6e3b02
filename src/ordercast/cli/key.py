"""`ordercast key`: a new key for a live group."""

import os
from pathlib import Path
from typing import Annotated

import typer

from ordercast.model.config import require
from ordercast.model.errors import ConfigError
from ordercast.wire.keys import new_key


def key_command(
    out: Annotated[Path | None, typer.Option(help="Write it to this new file, readable only by you.")] = None,
    key_id: Annotated[
        int,
        typer.Option(
            "--id", help="Number of the key, 1 to 255; each datagram has that of the key it is encrypted with."
        ),
    ] = 1,
) -> None:
    """Generate a key for a live group.

    The key is a line ID:HEX. Give all members, and the relay, the same file with --key FILE.
    """
    require(1 <= key_id <= 255, f"--id: a key's id is 1 to 255, not {key_id}")
    line = new_key(key_id) + "\n"
    if out is None:
        typer.echo(line, nl=False)
        return
    try:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(line)
        except OSError:  # such as a full disk: a file without a key would be in the way
            out.unlink(missing_ok=True)
            raise
    except FileExistsError:
        raise ConfigError(
            f"{out} exists already; to rotate keys, print a new key with another --id and without --out, add the line "
            "below the old one at all members, then move it above the old one at all, then remove the old one"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot write the key to {out}: {error.strerror}; choose another file") from error
