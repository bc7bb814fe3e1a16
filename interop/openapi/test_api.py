"""The description of the API against the meta-schema of OpenAPI 3.1, and a running hearth against the description: schemathesis
makes requests of all operations, as they are described and broken in many ways. No reply is a fault of the server's, and none has
a status, a type or a shape that is not described. Run by `make interop`; `make openapi` tries for longer.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

from hearth import Server  # noqa: E402
from openapi_spec_validator import OpenAPIV31SpecValidator  # noqa: E402

KEY = "key-of-the-test"
SCRIPT = """\
{"if_tool": "", "times": 400, "raw": "<think>Hm.</think>Let me look.\\n<tool_call>\\n{\\"name\\": {{json .Tool}}, \\"arguments\\": {\\"a\\": 1}}\\n</tool_call>"}
{"raw": "<think>Hm.</think>Hello."}
"""
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,events"


def shut(v):
    """Has objects allow no members but those that are described, where nothing else is said of others."""
    if isinstance(v, dict):
        if isinstance(v.get("properties"), dict) and "additionalProperties" not in v:
            v["additionalProperties"] = False
        v = list(v.values())
    if isinstance(v, list):
        for of in v:
            shut(of)


def referred(v, schemas, names):
    """The names of the schemas that v refers to, also by others."""
    if isinstance(v, dict):
        name = str(v.get("$ref", "")).removeprefix("#/components/schemas/")
        if name in schemas and name not in names:
            names.add(name)
            referred(schemas[name], schemas, names)
        v = list(v.values())
    if isinstance(v, list):
        for of in v:
            referred(of, schemas, names)


def strict(doc):
    """Closes the schemas of replies, but for those that requests share with them. What a stream is as a text is left out: the check
    of its events is our own."""
    schemas, asked = doc["components"]["schemas"], set()
    for item in doc["paths"].values():
        for operation in item.values():
            if isinstance(operation, dict):
                referred(operation.get("requestBody"), schemas, asked)
                shut(operation.get("responses"))
                for response in operation.get("responses", {}).values():
                    response.get("content", {}).get("text/event-stream", {}).pop("schema", None)
    for name, schema in schemas.items():
        if name not in asked:
            shut(schema)
    return doc


class API(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        tmp = tempfile.TemporaryDirectory()
        cls.addClassCleanup(tmp.cleanup)
        cls.dir = Path(tmp.name)
        # What is fetched, kept and removed is the test's own.
        for name in ("HOME", "HF_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"):
            os.environ[name] = str(cls.dir / "home")
        (cls.dir / "home").mkdir(mode=0o700)
        (cls.dir / "script.jsonl").write_text(SCRIPT)
        (cls.dir / "mcp.json").write_text('{"mcpServers": {"none": {"command": "false"}}}')
        subprocess.run([sys.executable, HERE.parent / "python" / "encoder.py", cls.dir / "encoder"], check=True)
        cls.server = Server("--log-level", "error", "--api-key", KEY, "--script", str(cls.dir / "script.jsonl"), "--store", "memory", "--offline",
                            "--enable-metrics", "--embedding-model", str(cls.dir / "encoder"), "--mcp-config", str(cls.dir / "mcp.json"))
        cls.addClassCleanup(cls.server.stop)
        with urllib.request.urlopen(cls.server.url + "/openapi.json") as r:
            cls.doc = json.load(r)

    def test_document(self):
        self.assertEqual([str(e) for e in OpenAPIV31SpecValidator(self.doc).iter_errors()], [])

    def test_server(self):
        file = self.dir / "openapi.json"
        file.write_text(json.dumps(strict(self.doc)))
        env = dict(os.environ, OPENAPI=str(file), SCHEMATHESIS_HOOKS="events", PYTHONPATH=str(HERE))
        done = subprocess.run([Path(sys.executable).parent / "schemathesis", "run", str(file), "--url", self.server.url, "--checks", CHECKS,
                               "--header", "Authorization: Bearer " + KEY, "--phases", "coverage,fuzzing", "--seed", os.environ.get("API_SEED", "1"),
                               "--max-time", os.environ.get("API_SECONDS", "30"), "--workers", "2", "--request-timeout", "20", "--warnings", "off",
                               "--suppress-health-check", "all", "--continue-on-failure", "--no-color"], env=env, cwd=self.dir, timeout=2000, check=False)
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
