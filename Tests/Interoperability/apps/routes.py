"""The routes of all applications, as (path, handler, methods); no methods: every method.

All handlers but `open` and `files` are behind rules; gateway.py has these. `/files/` has a handler
`private` below `/files/private/`, and what is routed nowhere has the handler `none`.
"""

ROUTES = [
    ("/", "root", None),
    ("/pay", "pay", ["POST"]),
    ("/upload", "upload", ["POST"]),
    ("/profile", "profile", ["GET"]),
    ("/item", "item", ["DELETE"]),
    ("/v1/orders", "orders", None),
    ("/hosted", "hosted", ["POST"]),
    ("/checkin", "checkin", ["POST"]),
    ("/told", "told", ["POST"]),
    ("/trial", "trial", ["POST"]),
    ("/open", "open", None),
]


def response_fields(fields, query):
    """The fields that a request makes an application add to its response: `mirror` copies those of
    the request, as echo pages do, and `set` with `to` names one, as badly written redirects do.
    """
    added = []
    if "mirror" in query:
        added += [(name, value) for name, value in fields.items() if name.startswith("app-attest")]
    if "set" in query:
        added.append((query["set"][0], query["to"][0]))
    return added


# Content of other methods is left unread, as most applications do.
READS_CONTENT = {"POST", "PUT", "PATCH"}
