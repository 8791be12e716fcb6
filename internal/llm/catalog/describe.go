package catalog

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Marks of what a model can do, as [Model.Description] shows them.
const (
	visionMark = "👁 "
	toolsMark  = "⚒ "
)

// Description returns a line on m for lists that people choose from. Its columns are
// right-aligned, so that the lines of several models can stand below each other, and
// "-" is unknown:
//
//	chat       MAX-INPUT / MAX-OUTPUT  |  INPUT-PRICE / OUTPUT-PRICE  MARKS
//	embedding  max-tokens:N;max-batch:N;price:N
//	reranker   nothing
//
// The marks are an eye for vision and hammers for tools.
func (m Model) Description() string {
	switch m.Type {
	case Embedding:
		return fmt.Sprintf("max-tokens:%s;max-batch:%s;price:%s",
			countText(cmp.Or(m.MaxTokensPerChunk, m.MaxInputTokens)), countText(m.MaxBatchSize), priceText(m.InputPrice))
	case Reranker:
		return ""
	}
	return fmt.Sprintf("%8s / %8s  |  %6s / %6s  %6s",
		countText(m.MaxInputTokens), countText(m.MaxOutputTokens), priceText(m.InputPrice), priceText(m.OutputPrice), m.marks())
}

func (m Model) marks() string {
	var b strings.Builder
	if m.SupportsVision {
		b.WriteString(visionMark)
	}
	if m.SupportsFunctionCalling {
		b.WriteString(toolsMark)
	}
	return b.String()
}

func countText(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func priceText(price *float64) string {
	if price == nil {
		return "-"
	}
	return strconv.FormatFloat(*price, 'f', -1, 64)
}
