"""What all parts share: the limits, the words of an answer, and the errors that an app gets."""
import base64, contextlib, hashlib, json
from stack import parse

class Limits:
    """The limits of machine.md, under its names, in seconds."""
    proof_wait, enrolment_wait, plan_wait, challenge_wait, observed_wait, session_wait = 10, 10, 2, 5, 0.25, 5
    device_token_wait, assertion_wait, least_for_device, retry_wait = 5, 10, 1, 10
    strict_wait, strict_turn, strict_time = 30, 5, 600
    maximum_attempts, unfinished_max, held_max, redirects, call_time, idle_time = 3, 8, 16, 10, 30, 15
    keys_per_day, enrolment_delay, enrolment_delay_max, retry_after_max, retry_spread = 3, 2, 3600, 86400, 0.25
    unexplained_delay, service_wait, lease, lease_look = 21600, 60, 90, 0.5
    unfit_max, signing_tries, signing_tries_max, signing_pause, lull = 2, 2, 4, 0.125, 10
    opening_tries, short_hold, long_hold = 2, 30, 3600
    challenges_asked, count_max, calls_max, challenges_kept, challenge_lifetime = 4, 8, 4, 16, 60
    used_max, challenge_hold_max, fruitless_hold, fruitless_max, routes_learned = 64, 60, 1, 6, 128
    plan_usual_age, plan_failure_hold, plan_failure_hold_max, plan_doubt_age = 3600, 30, 3600, 60

class DeviceError(Exception): """A word of the device: of DCError, or of Android's keystore."""
class Unfit(Exception): """The request can't be signed, and the app does not want it without a proof."""
class MayHaveRun(Exception): """The origin may have run the request. The argument is the answer that came."""
class TokenNeeded(Exception): """The app has to get a token. The arguments: the answer, and the names of tokens."""

ALL_PARTS = ["method", "target", "body", "challenge"]
UNKNOWN = {"sign": [], "headers": [], "accept": [], "fields": {}, "pointer": None, "strict": False, "device": False,
           "observes": False, "said": 0}
OPENING = UNKNOWN | {"sign": ALL_PARTS}
USUAL = {"key_id": "App-Attest-Key-Id", "assertion": "App-Attest-Assertion", "challenge": "App-Attest-Challenge",
         "unsupported": "App-Attest-Unsupported"}

def base64_of(data): return base64.b64encode(data).decode()
def digest_of(data): return f"sha-256=:{base64_of(hashlib.sha256(data).digest())}:"

def verdict(answer):
    """The gateway's reason, `next` and parameters; three times None where the answer is not the gateway's."""
    words = parse(answer.fields.get("app-attest-error", ""))
    schemes = parse(answer.fields.get("www-authenticate", ""))
    says = next((said for word, said in schemes if word.lower() == "appattest"), None)
    if not words and answer.status == 401 and says is not None: words = [(says.get("error", ""), says)]
    if not words or "age" in answer.fields: return None, None, None
    return words[0][0], words[0][1].get("next"), says or {}

def document(answer, **members):
    """What a good answer of an endpoint holds. None where a member is missing or of another type."""
    if not answer or not 200 <= answer.status <= 299 or "age" in answer.fields: return None
    with contextlib.suppress(ValueError, AttributeError):
        found = json.loads(answer.content)
        if all(isinstance(found.get(name), kind) for name, kind in members.items()): return found

