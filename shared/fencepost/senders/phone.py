"""A phone number as every provider of text messages takes it: E.164 (ITU-T), a plus and up to fifteen digits."""

import re

E164 = re.compile(r"\+[1-9][0-9]{1,14}", re.ASCII)
