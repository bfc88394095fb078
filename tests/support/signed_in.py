"""A codex that believes to be logged in at ChatGPT, all of which is the scripted model."""

import base64
import json
from pathlib import Path
from typing import Any, Final

from clients.cli.scripted_model import ScriptedModel

_YEAR_2100: Final = 4_102_444_800  # seconds: codex renews no login that lasts


def sign_in(home: Path, model: ScriptedModel) -> None:
    """Give a CODEX_HOME a login of nobody's, which nobody checks.

    Codex then has the tools of such an account, and asks for them at loopback only.
    """
    config = home / "config.toml"
    text = config.read_text().replace(
        'wire_api = "responses"', 'wire_api = "responses"\nrequires_openai_auth = true'
    )
    text = text.replace("[features]", "[features]\napps = false")
    top = f'chatgpt_base_url = "{model.base_url}"\n'
    config.write_text(f"{top}{text}\n[analytics]\nenabled = false\n")
    (home / "auth.json").write_text(json.dumps(_login()))


def _login() -> dict[str, Any]:
    account = {"chatgpt_plan_type": "pro", "chatgpt_account_id": "nobody"}
    claims = {"exp": _YEAR_2100, "https://api.openai.com/auth": account}
    token = ".".join((_part({"alg": "none"}), _part(claims), "bm9ib2R5"))
    return {
        "auth_mode": "chatgpt",
        "OPENAI_API_KEY": None,
        "tokens": {
            "id_token": token,
            "access_token": token,
            "refresh_token": "none",
            "account_id": "nobody",
        },
        "last_refresh": "2099-01-01T00:00:00Z",
    }


def _part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
