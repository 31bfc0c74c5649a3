"""Phrases that are banned in docstrings, comments, string literals and pages."""

from __future__ import annotations

from typing import Final

from words.rules import Place, Rule

_CODE: Final = frozenset({Place.DOCSTRING, Place.COMMENT})
_USERS: Final = frozenset({Place.STRING, Place.DOCS})
_TEXT: Final = _CODE | _USERS

_ENDS: Final = r"(?=[.,;:!?)]|$| (?:yet|any|already|before|after|and|or|but|when|while|until|again)\b)"
"""After a verb: the clause ends here, so that the verb has no complement."""

TEXTS: Final = (
    Rule(
        "tell",
        _TEXT,
        '"report", "record" or "return"',
        "a component reports, records, emits an Event or sets a condition",
        "It is told how far the installation is.",
        "The progress is reported; sums tell them apart.",
        pattern=r"\b(?:[Tt]ells?|[Tt]old|[Tt]elling)\b(?! (?:\S+ ){0,4}?apart\b)",
    ),
    Rule(
        "said",
        _TEXT,
        '"report", "state" or the verb of what is done',
        "a component reports or states",
        "Nothing was said before.",
        "Nothing was reported before.",
        pattern=r"\bsaid\b|\b(?:say|says|saying) (?:of|so|that|whether|why|what|how|nothing|it|which|where|when)\b",
    ),
    Rule(
        "is-no",
        _TEXT,
        '"is not a valid ..." or "is not a ..."',
        'English negates the verb: "is not a version"',
        '"1.x" is no version',
        '"1.x" is not a valid version; there is no other, and it is no longer used',
        pattern=(
            r"(?<!\bthere )(?<!\bThere )\b(?:is|are|was|were|be) no (?!longer\b|more\b|other\b|less\b|fewer\b|need\b"
            r"|different\b|matter\b|such\b|later\b|earlier\b)[a-z0-9{]"
        ),
    ),
    Rule(
        "is-none",
        _TEXT,
        '"is not a ..." or "does not exist"',
        "English negates the verb",
        "Raises: it is none.",
        "Raises: the text is not a version; is None",
        pattern=r"(?<!\bthere )(?<!\bThere )\b(?:is|are|was|were) none\b(?! of\b)",
    ),
    Rule(
        "goes",
        _TEXT,
        '"is being deleted" or "is released"',
        "an object is being deleted; a server is released",
        "The Machine goes",
        "The Machine is being deleted; the packet goes to the server",
        pattern=(
            rf"\bgoes{_ENDS}|\b(?:can|may|must|will|cannot|to|lets?|letting)(?: \S+)?? go{_ENDS}"
            r"|\bgoes (?:with it|first|last)\b"
        ),
    ),
    Rule(
        "gone",
        _TEXT,
        '"was deleted", "no longer exists" or "is missing"',
        "an object was deleted, or is missing",
        "the Node is gone",
        "the Node was deleted",
        pattern=r"\bgone\b(?! (?:on|through|into|by)\b)|\b(?:is|are|was|were) away\b",
    ),
    Rule(
        "made",
        _TEXT,
        '"created"',
        "an object is created",
        "Machine a is being made",
        "Machine a is being created; the image is made of layers",
        pattern=r"\b(?:is|are|was|were|be|been|being|gets?) made\b(?! (?:of|up|from|for|available|sure|by hand)\b)",
    ),
    Rule(
        "anew",
        _TEXT,
        '"again", or the verb with "re-"',
        '"anew" is not used in technical English',
        "write the page anew",
        "write the page again",
        pattern=r"\b[Aa]new\b",
    ),
    Rule(
        "available",
        _TEXT,
        '"available" or "claimable"',
        "a server that can be claimed is available",
        "no server is to be had",
        "no server is available",
        pattern=r"\b(?:may|can|could|cannot|to) be had\b",
    ),
    Rule(
        "queue",
        _TEXT,
        '"is queued" or "waits for"',
        "what waits in an order is queued",
        "it stands in line",
        "it is queued; the text is in line 3",
        pattern=r"\b(?:stands?|stood|standing|waits?|waiting) in (?:the )?line\b|\bin the line of\b",
    ),
    Rule(
        "release",
        _TEXT,
        '"release"',
        "an owner releases a server",
        "Let the address go.",
        "Release the address.",
        pattern=r"\b[Ll]et(?:s|ting)?(?: \S+){0,3}? go\b(?! (?:on|through|into|to)\b)"
        r"|\b(?:gives?|given|gave|giving) (?:\S+ )?back\b",
    ),
    Rule(
        "claim",
        _TEXT,
        '"claims"',
        "an owner claims a server",
        "takes Hardware default/a",
        "claims Hardware default/a",
        pattern=r"\b[Tt](?:akes?|ook|aken|aking) (?:a |the |this |that |another |no )?(?:Hardware|servers?)\b",
    ),
    Rule(
        "refuse",
        _TEXT,
        '"reject"',
        "Kubernetes rejects input",
        "the request is refused",
        "the request is rejected; connection refused",
        pattern=r"(?<!onnection )(?<!onnections )\b[Rr]efus(?:e|es|ed|ing|al|als)\b",
    ),
    Rule(
        "as-it-is",
        _TEXT,
        '"unchanged", "current" or "previous"',
        "the states of an update are old and new, of a controller current and desired",
        "leave the object as it was.",
        "leave the object unchanged.",
        pattern=r"\bas (?:it|they|he) (?:is|are|was|were)(?=[.,;:)]|$)",
    ),
    Rule(
        "is-there",
        _TEXT,
        '"exists", "is present" or "is set"',
        "an object exists or is missing; a value is set or unset",
        "once the Node is there",
        "once the Node exists; is there a Node?",
        pattern=rf"\b(?:is|are|was|were|be|been) (?:not |all |already |still )?there{_ENDS}",
    ),
    Rule(
        "who",
        _TEXT,
        'the actor: "the client", "the owner", "a user", "the component"',
        "a relative pronoun needs a noun",
        "the answer to who creates objects",
        "the answer to clients who create objects",
        pattern=r"\b(?:to|for|of|by|from|with|on|than|and|or|is|are|as) who(?:ever)?\b|\b[Ww]hoever\b",
    ),
    Rule(
        "what-is",
        _TEXT,
        "the noun: the desired state, the cached fact, the reason for waiting",
        "a relative pronoun needs a noun",
        "Return what is wanted.",
        "Return the desired state.",
        pattern=(
            r"\b[Ww]hat (?:is|are|was|were|has|have) (?:wanted|known|waited for|said|asked|told|there|at fault|due"
            r"|to be|not known|held|meant|left|missing|needed|under way)\b"
        ),
    ),
    Rule(
        "those-who",
        _TEXT,
        'the noun: "clients that", "objects that"',
        "a pronoun needs a noun",
        "those who ask",
        "clients that ask",
        pattern=r"\b[Tt]hose (?:who|whose)\b|\b[Tt]hat which\b",
    ),
    Rule(
        "against",
        _TEXT,
        '"prevents", "problem" or "objection"',
        "a check finds problems",
        "little speaks against it",
        "few problems prevent it",
        pattern=r"\b(?:speaks?|spoke|said|speaking) against\b",
    ),
    Rule(
        "counts",
        _TEXT,
        '"takes precedence" or "is used"',
        "of two values one takes precedence",
        "yours counts, which counts before ours",
        "your value takes precedence; it counts the servers",
        pattern=(
            r"\b(?:counts? (?:before|first)|(?<!the )(?<!their )(?<!its )(?<!of )(?<!and )counts(?=[.,;:)]|$)"
            r"|(?:not|never|they|all) count(?=[.,;:)]|$))"
        ),
    ),
    Rule(
        "how-far",
        _TEXT,
        '"progress"',
        "how far an operation is, is its progress",
        "how far an installation is",
        "the progress of an installation",
        pattern=r"\b[Hh]ow far\b",
    ),
    Rule(
        "over",
        _TEXT,
        '"completed", "failed", "cancelled" or "timed out"',
        "an operation completes, fails, is cancelled or times out",
        "when the installation is over",
        "when the installation has completed",
        pattern=rf"\b(?:is|are|was|were) over{_ENDS}|\bat (?:its|their) end\b",
    ),
    Rule(
        "wanted",
        _TEXT,
        '"desired" or "requested"',
        "the state that a controller works towards is the desired state",
        "the wanted number of Machines",
        "the desired number of Machines",
        pattern=r"\b[Ww]anted\b",
    ),
    Rule(
        "ask",
        _TEXT,
        '"query", "request" or "probe"',
        "a component queries, requests or probes",
        "the BMC is asked for its power",
        "the BMC is queried for its power",
        pattern=r"\b(?:is|are|was|were|be|been|being) asked\b|\baskers?\b",
    ),
    Rule(
        "question",
        _CODE,
        '"query", "request" or "probe"',
        "a component queries, requests or probes",
        "one question at a time",
        "one query at a time",
        pattern=r"(?<!\bin )\b[Qq]uestions?\b",
    ),
    Rule(
        "docstring-start",
        frozenset({Place.DOCSTRING}),
        'what it is for or returns: "Return whether ...", "The reason for ...", "Keys of ..."',
        "the first sentence has a subject or begins with a verb",
        "Whether the address is the claim's.",
        "Return whether the address belongs to the claim.",
        pattern=(
            r"\A(?:Whether|What|Who|Whom|Whose|Where|How|Why|Which|That|Those|When|If|As|Of|Until|Without|With|From|By"
            r"|Because|So)\b"
        ),
        kinds=frozenset({"module", "class", "function"}),
    ),
    Rule(
        "attribute-start",
        frozenset({Place.DOCSTRING, Place.STRING}),
        'what the value is: "Names of ...", "Owner of ...", "Whether ..."',
        "a description begins with a noun",
        "Who holds the server.",
        "Owner of the server.",
        pattern=r"\A(?:What|Who|Whom|Whose|Why|Which|That|Those|As|Of)\b(?=[^?]*\.\Z)",
        kinds=frozenset({"attribute", "string"}),
    ),
)
