"""Templates rendered as transformers 5.24 renders chat templates, with the clock stopped at 2024-07-26 12:34:56."""
import datetime
import json
import threading

import transformers.utils.chat_template_utils as utils


class Stopped(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 7, 26, 12, 34, 56)


utils.datetime = Stopped


def render(template, variables):
    """The text, or None and the exception. Variables: names to JSON texts."""
    try:
        values = {name: json.loads(text) for name, text in variables.items()}
        made = utils._cached_compile_jinja_template(template).render(**values)
        made.encode()
        return made, None
    except Exception as error:  # whatever Python raises is a refusal
        return None, error
