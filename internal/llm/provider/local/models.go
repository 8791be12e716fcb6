package local

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// question is a request that identifies a program.
type question struct {
	path string

	// models returns the chat models that an answer lists; ok is false if the answer
	// is not that of the program.
	models func(doc []byte) (models []string, ok bool)
}

// questions returns what to ask in turn, until one is answered.
func questions(k Kind) []question {
	switch k {
	case Ollama:
		return []question{{"/api/tags", ollamaModels}}
	case LlamaCPP:
		return []question{{"/v1/models", ownedBy("llamacpp")}}
	case VLLM:
		return []question{{"/v1/models", ownedBy("vllm")}}
	case LMStudio:
		return []question{{"/api/v0/models", lmStudioModels}, {"/v1/models", ownedBy("organization_owner")}} // the first since 0.3.6
	}
	return nil
}

// listed is a model in the list of a program: in Ollama's own, in LM Studio's own or in the OpenAI format.
type listed struct {
	Name, Digest string // Ollama's
	Details      struct{ Family string }
	ID           string // the others'
	Type, State  string // LM Studio's
	OwnedBy      string `json:"owned_by"`
}

// names returns the names of the models that chat. ok is false if there is a model that is not the program's.
func names(list []listed, isOwn, chats func(listed) bool) (names []string, ok bool) {
	for _, m := range list {
		name := cmp.Or(m.Name, m.ID)
		if name == "" || !isOwn(m) {
			return nil, false
		}
		if chats(m) {
			names = append(names, name)
		}
	}
	return names, true
}

// ollamaModels reads the list of Ollama's own API. Others imitate it, llama.cpp
// among them, and have no digests to tell.
func ollamaModels(doc []byte) ([]string, bool) {
	var list struct{ Models *[]listed }
	if json.Unmarshal(doc, &list) != nil || list.Models == nil {
		return nil, false
	}
	return names(*list.Models, func(m listed) bool { return m.Digest != "" },
		func(m listed) bool { return !strings.Contains(m.Details.Family, "bert") && chats(m.Name) })
}

// lmStudioModels reads the list of LM Studio's own API.
func lmStudioModels(doc []byte) ([]string, bool) {
	var list struct{ Data *[]listed }
	if json.Unmarshal(doc, &list) != nil || list.Data == nil {
		return nil, false
	}
	return names(*list.Data, func(m listed) bool { return m.State != "" },
		func(m listed) bool { return m.Type == "llm" || m.Type == "vlm" })
}

// ownedBy reads a list in the OpenAI format whose models all have the same owner.
func ownedBy(owner string) func([]byte) ([]string, bool) {
	return func(doc []byte) ([]string, bool) {
		var list struct{ Data []listed }
		if json.Unmarshal(doc, &list) != nil || len(list.Data) == 0 {
			return nil, false
		}
		return names(list.Data, func(m listed) bool { return m.OwnedBy == owner }, func(m listed) bool { return chats(m.ID) })
	}
}

// chats reports whether a model is a chat model, as far as its name says.
func chats(name string) bool {
	name = strings.ToLower(name)
	return !slices.ContainsFunc([]string{"embed", "rerank", "bge-", "minilm"}, func(word string) bool {
		return strings.Contains(name, word)
	})
}
