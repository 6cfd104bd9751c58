"""Makes, prints and reads JSON."""
import json

records = [
    {"id": i, "name": f"name {i * 7919 % 10007}", "tags": [i % 7, i % 11], "at": i * 1.5}
    for i in range(6000)
]
text = json.dumps(records)
again = json.loads(text)
again.sort(key=lambda record: (record["tags"], record["name"]))
print(len(text), sum(record["id"] for record in again[::3]))
