"""Address and credentials of a bucket: an `s3://…` address, completed by the usual AWS variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, quote, urlsplit


@dataclass(frozen=True, slots=True)
class Address:
    """Bucket, prefix of all its keys, and credentials (empty: those of the machine's role)."""

    bucket: str
    prefix: str
    endpoint: str
    region: str
    access_key: str = ""
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)

    @property
    def fixed(self) -> bool:
        """Presence of credentials in the address, rather than from the machine's role."""
        return bool(self.access_key and self.secret_key)

    def path(self, key: str) -> str:
        """Return the key inside the bucket."""
        return f"{self.prefix}/{key}" if self.prefix else key

    @property
    def bucket_url(self) -> str:
        """Bucket's address, in path style."""
        return f"{self.endpoint}/{self.bucket}"

    def url(self, key: str) -> str:
        """Return the object's address, in path style."""
        return f"{self.endpoint}/{self.bucket}/{quote(self.path(key), safe='/~')}"


def parse(url: str, env: Mapping[str, str] | None = None) -> Address:
    """Parse `s3://bucket/prefix?endpoint=http://…&region=…&access_key_id=…&secret_access_key=…`, parameters optional.

    Missing parameters are taken from AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION,
    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. Raises ValueError.
    """
    env = os.environ if env is None else env
    parts = urlsplit(url)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    unknown = set(query) - {"endpoint", "region", "access_key_id", "secret_access_key", "session_token"}
    if parts.scheme != "s3" or not parts.netloc or unknown:
        raise ValueError("an object store's address is s3://bucket/prefix?endpoint=…&region=…")

    def setting(name: str, *variables: str) -> str:
        return query.get(name) or next((env[variable] for variable in variables if env.get(variable)), "")

    region = setting("region", "AWS_REGION", "AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = setting("endpoint", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") or f"https://s3.{region}.amazonaws.com"
    return Address(
        bucket=parts.netloc,
        prefix=parts.path.strip("/"),
        endpoint=endpoint.rstrip("/"),
        region=region,
        access_key=setting("access_key_id", "AWS_ACCESS_KEY_ID"),
        secret_key=setting("secret_access_key", "AWS_SECRET_ACCESS_KEY"),
        session_token=setting("session_token", "AWS_SESSION_TOKEN"),
    )
