"""Commands for language models."""

import time
from typing import Any

from adapters.pydantic_ai.generation import PydanticModels
from entrypoints.cli.store import DEFAULT_OPTIONS, CommandOptions
from entrypoints.errors import CommandError
from entrypoints.factories import create_pydantic_models
from entrypoints.operations.validation import JsonSchemaValidator
from ports.language_models import ModelAccessRefused, ModelPrompt, ModelRefused, ModelUnavailable, ModelUsage

_TASK = "models.check"
_SCHEMA = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}


async def check(*, model: str | None = None, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Send two small requests to the language model: one for a structured answer, and a stream with a tool.

    Args:
        model: Name of the model (default: JOINERY_MODEL).
    """
    models = create_pydantic_models(options.read_settings(), JsonSchemaValidator())
    if models is None:
        raise CommandError("No language model is configured. Set JOINERY_MODELS.")
    name = models.get_model_name(_TASK, model)
    try:
        results = {
            "structured answer": await _check_answer(models, name),
            "stream with a tool": await _check_stream(models, name),
        }
    except ModelAccessRefused as error:
        settings = "JOINERY_MODELS_URL, JOINERY_MODELS_KEY, JOINERY_MODEL and JOINERY_MODEL_PRICES"
        raise CommandError(f"{name}: {error} The settings are {settings}.") from None
    except ModelRefused as error:
        raise CommandError(
            f"{name}: {error} Change JOINERY_MODEL to a model with structured answers and tools."
        ) from None
    except ModelUnavailable as error:
        raise CommandError(f"{name}: {error} Check JOINERY_MODELS_URL, or run the command again later.") from None
    finally:
        await models.close()
    lines = [
        f"{part:<18}  {result['model']}, first token after {result['first_token_ms']:,} ms, end after {result['total_ms']:,} ms, "
        f"{result['input_tokens']:,} tokens in, {result['output_tokens']:,} out, ${result['cost_micros'] / 1e6:.6f}"
        for part, result in results.items()
    ]
    return options.print_result({"model": name, "checks": results}, *lines)


async def _check_answer(models: PydanticModels, name: str) -> dict[str, Any]:
    """Request a structured answer, which arrives as a whole."""
    started_at = time.monotonic()
    prompt = ModelPrompt(_TASK, "Return the colour that the text names.", {"text": "The sofa is red."}, _SCHEMA, name)
    usage = (await models.generate(prompt)).usage
    seconds = time.monotonic() - started_at
    return _build_result(usage, seconds, seconds)


async def _check_stream(models: PydanticModels, name: str) -> dict[str, Any]:
    """Request a stream with a tool."""
    from adapters.pydantic_ai.stream_check import check_stream  # noqa: PLC0415  slow to import

    timing = await check_stream(models.find_model(_TASK, name))
    counts = timing.response.usage
    usage = models.compute_usage(name, counts.input_tokens, counts.output_tokens)
    return _build_result(usage, timing.first_event_seconds, timing.total_seconds)


def _build_result(usage: ModelUsage, first_token_seconds: float, total_seconds: float) -> dict[str, Any]:
    """Return the JSON object of a check."""
    return {
        "model": usage.model,
        "first_token_ms": round(first_token_seconds * 1000),
        "total_ms": round(total_seconds * 1000),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_micros": usage.cost_micros,
    }
