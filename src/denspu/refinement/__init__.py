"""Steps 5 and 6 in one: from the boundary's guess to labels for all of U."""

from denspu.refinement.embedding import EmbeddingRefiner
from denspu.refinement.members import MembersRefiner
from denspu.refinement.network import NetworkRefiner
from denspu.refinement.ranking import RankingRefiner

__all__ = ["EmbeddingRefiner", "MembersRefiner", "NetworkRefiner", "RankingRefiner"]
