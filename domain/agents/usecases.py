"""Which tools there are, and which of them a credential may use."""

from collections.abc import Iterable, Iterator

from domain.agents.model import AgentTool


class ToolManifest:
    """All tools, in the order of their operations. Raises ValueError for two tools of one name."""

    def __init__(self, tools: Iterable[AgentTool]) -> None:
        self._tools = tuple(tools)
        self._by_name = {tool.name: tool for tool in self._tools}
        if len(self._by_name) != len(self._tools):
            raise ValueError("Two tools share a name.")

    def __iter__(self) -> Iterator[AgentTool]:
        """Every tool."""
        return iter(self._tools)

    def find(self, name: str) -> AgentTool | None:
        """Return the tool with the name, or None."""
        return self._by_name.get(name)

    @staticmethod
    def permits(scopes: frozenset[str], tool: AgentTool) -> bool:
        """Whether these scopes are enough for the tool."""
        return tool.scope is None or tool.scope in scopes

    def permitted(self, scopes: frozenset[str]) -> tuple[AgentTool, ...]:
        """Return the tools that the scopes permit."""
        return tuple(tool for tool in self._tools if self.permits(scopes, tool))
