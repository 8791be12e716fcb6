package command

import (
	"context"
	"slices"
	"strconv"

	"loki/internal/app"
	"loki/internal/llm/catalog"
)

// completeSession completes the name of a session of the agent in force, or of none.
func completeSession() completer {
	return first(func(c *Console, ctx context.Context, words []string) []Candidate {
		return c.sessions(ctx, c.conv.Scope(), words[0])
	})
}

// completeStarter completes the number of a way to begin with the agent.
func completeStarter() completer {
	return first(func(c *Console, _ context.Context, _ []string) (found []Candidate) {
		if _, ok := c.conv.Agent(); !ok {
			return nil
		}
		for i, s := range c.conv.KnownStarters() {
			found = append(found, Candidate{Value: strconv.Itoa(i + 1), Description: s})
		}
		return found
	})
}

// completeSet completes a setting, and then its value.
func completeSet() completer {
	return func(c *Console, ctx context.Context, words []string) (found []Candidate) {
		switch len(words) {
		case 1:
			for _, key := range c.conv.SettingKeys() {
				found = append(found, Candidate{Value: key, Description: c.conv.Setting(key), Space: true})
			}
		case 2:
			found = c.settingValues(ctx, words[0], words[1])
		}
		return found
	}
}

// settingValues returns what a setting may be: another value than it is, or one that is worth to begin with.
func (c *Console) settingValues(ctx context.Context, key, typed string) []Candidate {
	now := c.conv.Setting(key)
	switch key {
	case "model":
		return c.modelCandidates(catalog.Chat)
	case "rag_reranker_model":
		return c.modelCandidates(catalog.Reranker)
	case "enabled_tools":
		return choices(typed, func() ([]app.Choice, error) { return c.App.ToolChoices(ctx) })
	case "enabled_mcp_servers":
		return choices(typed, c.App.ServerChoices)
	case "continuation_prompt":
		return candidatesOf([]string{"null"})
	case "save_session":
		return candidatesOf(slices.DeleteFunc([]string{"true", "false", "null"}, func(v string) bool { return v == now }))
	case "max_output_tokens":
		if m, err := c.App.Catalog.Resolve(c.conv.Settings().Model, catalog.Chat); err == nil && m.MaxOutputTokens > 0 {
			return candidatesOf([]string{strconv.Itoa(m.MaxOutputTokens)})
		}
	}
	switch now {
	case "true":
		return candidatesOf([]string{"false"})
	case "false":
		return candidatesOf([]string{"true"})
	case "null":
		return nil
	}
	return candidatesOf([]string{now})
}
