"""The list of tools for AI agents, and the tools that a credential may use."""

from collections.abc import Iterable, Iterator

from domain.agents.model import AgentTool


class ToolManifest:
    """All tools for AI agents, in the order of the operations. Raises ValueError if two tools have the same name."""

    def __init__(self, tools: Iterable[AgentTool]) -> None:
        self._tools = tuple(tools)
        self._by_name = {tool.name: tool for tool in self._tools}
        if len(self._by_name) != len(self._tools):
            raise ValueError("Two tools have the same name.")

    def __iter__(self) -> Iterator[AgentTool]:
        """Iterate over all tools."""
        return iter(self._tools)

    def find(self, name: str) -> AgentTool | None:
        """Return the tool with that name, or None."""
        return self._by_name.get(name)

    @staticmethod
    def permits(scopes: frozenset[str], tool: AgentTool) -> bool:
        """Return whether a credential with these scopes may use the tool."""
        return tool.scope is None or tool.scope in scopes

    def list_permitted(self, scopes: frozenset[str]) -> tuple[AgentTool, ...]:
        """Return the tools that a credential with these scopes may use."""
        return tuple(tool for tool in self._tools if self.permits(scopes, tool))
