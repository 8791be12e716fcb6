package local

import (
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

// ollamaModels reads the list of Ollama's own API. Others imitate it, llama.cpp
// among them, and have no digests to tell.
func ollamaModels(doc []byte) ([]string, bool) {
	var list struct {
		Models *[]struct {
			Name    string
			Digest  string
			Details struct{ Family string }
		}
	}
	if json.Unmarshal(doc, &list) != nil || list.Models == nil {
		return nil, false
	}
	var names []string
	for _, m := range *list.Models {
		if m.Name == "" || m.Digest == "" {
			return nil, false
		}
		if !strings.Contains(m.Details.Family, "bert") && chats(m.Name) {
			names = append(names, m.Name)
		}
	}
	return names, true
}

// lmStudioModels reads the list of LM Studio's own API.
func lmStudioModels(doc []byte) ([]string, bool) {
	var list struct {
		Data *[]struct {
			ID    string
			Type  string
			State string
		}
	}
	if json.Unmarshal(doc, &list) != nil || list.Data == nil {
		return nil, false
	}
	var names []string
	for _, m := range *list.Data {
		if m.ID == "" || m.State == "" {
			return nil, false
		}
		if m.Type == "llm" || m.Type == "vlm" {
			names = append(names, m.ID)
		}
	}
	return names, true
}

// ownedBy reads a list in the OpenAI format whose models all have the same owner.
func ownedBy(owner string) func([]byte) ([]string, bool) {
	return func(doc []byte) ([]string, bool) {
		var list struct {
			Data []struct {
				ID      string
				OwnedBy string `json:"owned_by"`
			}
		}
		if json.Unmarshal(doc, &list) != nil || len(list.Data) == 0 {
			return nil, false
		}
		var names []string
		for _, m := range list.Data {
			if m.ID == "" || m.OwnedBy != owner {
				return nil, false
			}
			if chats(m.ID) {
				names = append(names, m.ID)
			}
		}
		return names, true
	}
}

// chats reports whether a model is a chat model, as far as its name says.
func chats(name string) bool {
	name = strings.ToLower(name)
	return !slices.ContainsFunc([]string{"embed", "rerank", "bge-", "minilm"}, func(word string) bool {
		return strings.Contains(name, word)
	})
}
