package draw

import "loki/internal/workflow/graph"

// look is how the pictures show nodes of a type.
type look struct {
	dot, dotStyle  string    // shape and style of Graphviz
	mermaid        [2]string // brackets around the text
	padding, inset float64   // of the card in an SVG, see [layered.Box]
	lower          float64   // how much lower than the middle of the card the content is, twice
}

// looks are those of the types, and of a node that is missing.
var looks = map[graph.Type]look{
	graph.AgentNode:    {"box3d", "", [2]string{"[[", "]]"}, 18, 12, 0},
	graph.ScriptNode:   {"box", "", [2]string{"[", "]"}, 14, 10, 0},
	graph.ApprovalNode: {"diamond", "", [2]string{"{", "}"}, 24, 20, 0},
	graph.InputNode:    {"parallelogram", "", [2]string{"[/", "/]"}, 22, 20, 0},
	graph.LLMNode:      {"box", "rounded", [2]string{"(", ")"}, 14, 10, 0},
	graph.RAGNode:      {"cylinder", "", [2]string{"[(", ")]"}, 16, 26, 8},
	graph.MapNode:      {"hexagon", "", [2]string{"{{", "}}"}, 16, 16, 8},
	graph.GraphNode:    {"box", "", [2]string{"[", "]"}, 18, 14, 0},
	graph.ToolNode:     {"component", "", [2]string{"[/", "\\]"}, 18, 14, 0},
	graph.WaitNode:     {"octagon", "", [2]string{"((", "))"}, 26, 22, 0},
	graph.EndNode:      {"oval, peripheries=2", "", [2]string{"([", "])"}, 20, 22, 0},
	missingType:        {"box", "", [2]string{"[", "]"}, 14, 10, 0},
}

// missingType is the type of targets that do not exist.
const missingType graph.Type = "missing"
