package chat_test

import (
	"fmt"
	"reflect"
	"testing"

	"loki/internal/llm/chat"
)

func ExampleSettings_Over() {
	configuration := chat.Settings{Model: "openai:gpt-5", Sampling: chat.Sampling{Effort: chat.LowEffort}}
	role := chat.Settings{Sampling: chat.Sampling{Temperature: new(0.2)}}
	command := chat.Settings{Model: "claude:opus"}
	s := command.Over(role.Over(configuration))
	fmt.Println(s.Model, *s.Temperature, s.Effort)
	// Output: claude:opus 0.2 low
}

// TestEverySetting: a setting that is added later is laid over others, and has a key of its
// own in files.
func TestEverySetting(t *testing.T) {
	var below chat.Settings
	keys := make(map[string]bool)
	for _, f := range below.List() {
		switch p := f.Ptr.(type) {
		case *string:
			*p = f.Key
		case *chat.Effort:
			*p = chat.LowEffort
		case *chat.Memory:
			*p = chat.MemoryRead
		case *chat.Mode:
			*p = chat.ModePlan
		case **string:
			*p = &f.Key
		case **float64:
			*p = new(0.5)
		case **int:
			*p = new(1)
		case **bool:
			*p = new(false)
		default:
			t.Errorf("%s is of type %T", f.Key, f.Ptr)
		}
		if f.Key == "" || keys[f.Key] {
			t.Errorf("key %q", f.Key)
		}
		keys[f.Key] = true
	}
	if got := (chat.Settings{}).Over(below); !reflect.DeepEqual(got, below) {
		t.Errorf("nothing over %+v is %+v", below, got)
	}
	if got := below.Over(chat.Settings{Model: "other"}); !reflect.DeepEqual(got, below) {
		t.Errorf("%+v over a model is %+v", below, got)
	}
}
