"""Signs webhooks with PyPI's standardwebhooks.

Reads a JSON list of {secret, id, seconds, body} from standard input and writes the list of signatures.
"""

import datetime
import json
import sys

from standardwebhooks.webhooks import Webhook


def sign(message):
    sent = datetime.datetime.fromtimestamp(message["seconds"], tz=datetime.timezone.utc)
    return Webhook(message["secret"]).sign(message["id"], sent, message["body"])


json.dump([sign(message) for message in json.load(sys.stdin)], sys.stdout)
