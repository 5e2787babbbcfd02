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
    ("/open", "open", None),
]
# Content of other methods is left unread, as most applications do.
READS_CONTENT = {"POST", "PUT", "PATCH"}
