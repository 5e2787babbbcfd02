"""A Flask application."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from flask import Flask, jsonify, request

import record
from routes import READS_CONTENT, ROUTES, response_fields

application = Flask(__name__)


def execute(handler):
    query = request.args.to_dict(flat=False)
    record.entered(handler, request.method, request.path, query)
    content, form = b"", {}
    if request.method in READS_CONTENT:
        content = request.get_data(parse_form_data=False)
        form = request.form.to_dict(flat=False)
    fields = {name.lower(): value for name, value in request.headers.items()}
    fields |= record.cookie_fields(request.cookies)
    record.executed(handler, request.method, request.path, query, form, fields, content)
    answer = jsonify(handler=handler, query=query)
    for name, value in response_fields(fields, query):
        answer.headers[name] = value
    return answer


ALL = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
for route, name, methods in ROUTES:
    application.add_url_rule(
        route, name, lambda name=name: execute(name), methods=methods or ALL,
        provide_automatic_options=False,
    )


@application.route("/files/<path:rest>", methods=["GET"])
def files(rest):
    return execute(record.file_handler(rest))


@application.errorhandler(404)
@application.errorhandler(405)
def elsewhere(error):
    return execute("none"), error.code
