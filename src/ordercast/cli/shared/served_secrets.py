"""What guards a port that is served to other machines: a token that readers show, and a certificate for HTTPS."""

import os
import ssl
from pathlib import Path

from ordercast.model.errors import ConfigError, reason_of


def secrets_from(
    token_file: Path | None, variable: str, certificate: Path | None
) -> tuple[str | None, ssl.SSLContext | None]:
    """The token of a file, or else of a variable of the environment, and the certificate; None: there is none.

    Raises `ConfigError` if one cannot be read, and for a file without a token, which would let everybody in.
    """
    try:
        token = token_file.read_text().strip() if token_file is not None else os.environ.get(variable)
        tls = None
        if certificate is not None:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(certificate)
    except (OSError, UnicodeDecodeError) as error:
        why = reason_of(error) if isinstance(error, OSError) else "it is no text"
        raise ConfigError(f"cannot read the token or the certificate: {why}") from error
    if token_file is not None and not token:
        raise ConfigError(f"--token-file: there is no token in {token_file}; write one into it, or omit the option")
    return token or None, tls
