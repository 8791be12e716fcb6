package gemini

import (
	"strconv"
	"strings"

	"loki/internal/base/text"
	"loki/internal/llm/provider"
)

// limit is how much of an effort a model has been found to take.
type limit int

const (
	anyEffort  limit = iota
	fromLow          // no thinking level below low
	noThinking       // no thinking configuration at all
)

// generation is the way a model reasons, as far as its name says.
type generation int

const (
	silent  generation = iota // does not reason, or nothing is known
	budgets                   // takes budgets of tokens: 2.5
	levels                    // takes thinking levels: from 3 on
)

var geminiVersion = text.Regexp(`^gemini-(\d+)(?:\.(\d+))?\b`)

// baseName cuts the name of a model down to what says its kind.
func baseName(model string) string {
	return strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
}

// generationOf returns the generation of a model. Names without a version, such as
// gemini-flash-latest, mean the newest.
func generationOf(model string) generation {
	model = baseName(model)
	for _, other := range []string{"image", "tts", "audio", "live", "embedding"} {
		if strings.Contains(model, other) {
			return silent
		}
	}
	m := geminiVersion().FindStringSubmatch(model)
	if m == nil {
		if strings.HasPrefix(model, "gemini-") && strings.HasSuffix(model, "-latest") {
			return levels
		}
		return silent
	}
	major, _ := strconv.Atoi(m[1]) // digits; too many of them make it large
	switch {
	case major >= 3:
		return levels
	case major == 2 && m[2] == "5":
		return budgets
	}
	return silent
}

// thinkingFor translates an effort for a model. Nil leaves everything to the API.
func thinkingFor(model string, effort provider.Effort, l limit) *thinkingConfig {
	g := generationOf(model)
	if g == silent || l == noThinking {
		return nil
	}
	config := &thinkingConfig{IncludeThoughts: effort != provider.NoEffort}
	pro := strings.Contains(baseName(model), "-pro")
	switch {
	case effort == "":
	case g == budgets:
		config.ThinkingBudget = new(budget(effort, pro))
	default:
		config.ThinkingLevel = level(baseName(model), effort, pro || l == fromLow)
	}
	return config
}

// budget returns the tokens for an effort. The pro model cannot be kept from thinking:
// 128 is the least it takes.
func budget(effort provider.Effort, pro bool) int {
	switch effort {
	case provider.NoEffort:
		if pro {
			return 128
		}
		return 0
	case provider.MinimalEffort:
		return 512
	case provider.LowEffort:
		return 2048
	case provider.MediumEffort:
		return 8192
	}
	return 24576
}

// Thinking levels.
const (
	minimalLevel = "MINIMAL"
	lowLevel     = "LOW"
	mediumLevel  = "MEDIUM"
	highLevel    = "HIGH"
)

// level returns the thinking level for an effort. Only the smaller models know the
// level minimal, and none can be kept from thinking.
func level(model string, effort provider.Effort, fromLow bool) string {
	switch effort {
	case provider.NoEffort, provider.MinimalEffort:
		if fromLow {
			return lowLevel
		}
		return minimalLevel
	case provider.LowEffort:
		return lowLevel
	case provider.MediumEffort:
		if strings.HasPrefix(model, "gemini-3-pro") { // knows low and high only
			return highLevel
		}
		return mediumLevel
	}
	return highLevel
}

// notes returns what the model gets instead of an effort. A budget means its effort,
// and without a configuration the model is not known to reason.
func (c *thinkingConfig) notes(asked provider.Effort) []string {
	if c == nil || asked == "" || c.ThinkingLevel == "" {
		return nil
	}
	if level := provider.Effort(strings.ToLower(c.ThinkingLevel)); level != asked {
		return []string{asked.ReplacedNote(level)}
	}
	return nil
}

// lower returns the next limit after a rejection of config, and whether there is one.
func lower(config *thinkingConfig) (limit, bool) {
	switch {
	case config == nil:
		return 0, false
	case config.ThinkingLevel == minimalLevel:
		return fromLow, true
	}
	return noThinking, true
}
