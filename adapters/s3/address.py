"""Address and credentials of an S3 bucket, from an `s3://…` URL and the usual AWS environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, quote, urlsplit


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """Address of a bucket, and credentials.

    Attributes:
        bucket: The name of the bucket.
        prefix: The prefix of all object keys in the bucket.
        endpoint: The URL of the S3 service.
        region: The region.
        access_key: The access key ID; empty if the machine's instance role provides the credentials.
        secret_key: The secret access key, or empty.
        session_token: The session token of temporary credentials, or empty.
    """

    bucket: str
    prefix: str
    endpoint: str
    region: str
    access_key: str = ""
    secret_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)

    @property
    def has_credentials(self) -> bool:
        """True if the credentials are known here; False if the machine's instance role provides them."""
        return bool(self.access_key and self.secret_key)

    def prefix_key(self, key: str) -> str:
        """Return the key of an object in the bucket: the prefix and `key`."""
        return f"{self.prefix}/{key}" if self.prefix else key

    @property
    def bucket_url(self) -> str:
        """URL of the bucket (path style: the bucket is in the path, not in the host name)."""
        return f"{self.endpoint}/{self.bucket}"

    def build_object_url(self, key: str) -> str:
        """Return the URL of the object with the key (path style)."""
        return f"{self.endpoint}/{self.bucket}/{quote(self.prefix_key(key), safe='/~')}"


def parse_bucket_address(url: str, env: Mapping[str, str] | None = None) -> BucketAddress:
    """Parse `s3://bucket/prefix?endpoint=http://…&region=…&access_key_id=…&secret_access_key=…`. Raises ValueError.

    Query parameters are optional; missing ones are taken from AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION,
    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.
    """
    env = os.environ if env is None else env
    parts = urlsplit(url)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    unknown = set(query) - {"endpoint", "region", "access_key_id", "secret_access_key", "session_token"}
    if parts.scheme != "s3" or not parts.netloc or unknown:
        raise ValueError("the URL of the bucket must be s3://bucket/prefix?endpoint=…&region=…")

    def setting(name: str, *variables: str) -> str:
        return query.get(name) or next((env[variable] for variable in variables if env.get(variable)), "")

    region = setting("region", "AWS_REGION", "AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = setting("endpoint", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") or f"https://s3.{region}.amazonaws.com"
    return BucketAddress(
        bucket=parts.netloc,
        prefix=parts.path.strip("/"),
        endpoint=endpoint.rstrip("/"),
        region=region,
        access_key=setting("access_key_id", "AWS_ACCESS_KEY_ID"),
        secret_key=setting("secret_access_key", "AWS_SECRET_ACCESS_KEY"),
        session_token=setting("session_token", "AWS_SESSION_TOKEN"),
    )
