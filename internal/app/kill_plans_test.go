//go:build unix

package app_test

import (
	"strconv"
	"testing"
)

// killedPlans are an agent in plan mode: its plan waits for the user, and what is accepted is its todo list, whose two tasks have an effect each.
func killedPlans() scenario {
	return scenario{
		files: map[string]string{"config/agents/planner/config.yaml": "name: planner\nmode: plan\ninstructions: You plan.\nglobal_tools: [execute_command]\n"},
		agent: "planner", asks: true, effects: 2,
		act: func(req killRequest) map[string]any {
			switch {
			case req.rounds == 0:
				step := func(text string) any { return map[string]any{"text": text} }
				return calls(modelCall{"plan__propose", map[string]any{"title": "Two effects", "summary": "First one, then the other.", "steps": []any{step("the first"), step("the second")}}})
			case req.rounds <= 2:
				return calls(effect(req.rounds), modelCall{"todo__done", map[string]any{"id": strconv.Itoa(req.rounds)}})
			case req.rounds == 3:
				return calls(modelCall{"todo__list", map[string]any{}})
			}
			return says("over: " + req.Messages[len(req.Messages)-1].Content)
		},
	}
}

// TestKillPlans kills the process of an agent while it plans, and while it does what the user has accepted: the user is asked once, the todo list has each task
// once, and each is done once.
func TestKillPlans(t *testing.T) { killAndResume(t, killedPlans()) }
