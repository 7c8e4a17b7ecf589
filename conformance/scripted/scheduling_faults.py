"""Names of the faults of schedulers, caches that are shared or emptied, pauses and sleep."""

from __future__ import annotations

KNOWN = {
    "forgets": "the prefix cache holds nothing",
    "cold_only": "nothing is loaded for a prompt of which something is cached",
    "misaligned": "what is loaded behind cached blocks begins with the prompt's first",
    "counts_all": "all of a prompt is counted as loaded, what was cached included",
    "sends_computed": "prefill hands over junk for what it had cached",
    "first_chunk": "prefill hands over junk beyond the first N tokens of a prompt",
    "others_kv": "the KV of the request before is loaded",
    "never_preempts": "a small pool holds every request",
    "preempted_wrong": "a request that was preempted goes on from damaged KV",
    "salted_store": "the connector's store is keyed by the cache_salt too, as it should be",
    "no_adapter": "prefix cache and store know neither adapter nor model",
    "any_model": "KV of any model is fetched",
    "deaf_adapter": "an adapter answers as its base does",
    "no_commands": "there are no developer endpoints",
    "keeps_cache": "a reset says that it emptied the prefix cache, and did not",
    "keeps_store": "a reset says that it emptied the connector's store, and did not",
    "never_free": "a reset always says that blocks are held",
    "resets_held": "a reset damages what waits for decode",
    "deaf_to_pause": "a paused engine goes on answering",
    "pause_loses": "a pause drops what waits for decode",
    "bad_dreams": "whatever is loaded after a sleep is damaged",
    "no_sleep_mode": "--enable-sleep-mode is refused at start",
    "always_sync": "asynchronous scheduling is never on",
    "always_async": "asynchronous scheduling is never off",
}
