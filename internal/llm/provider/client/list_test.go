package client_test

import (
	"slices"
	"strings"
	"testing"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/anthropic"
	"loki/internal/llm/provider/client"
	"loki/internal/llm/provider/cohere"
	"loki/internal/llm/provider/gemini"
	"loki/internal/llm/provider/openai"
	"loki/internal/llm/provider/providertest/wiretest"
)

// TestListModels: each provider lists its models at its own address, and a refusal is without the key.
func TestListModels(t *testing.T) {
	for _, tt := range []struct {
		name, path, body string
		create           func(client.Options) (any, error)
	}{
		{"openai", "/v1/models", `{"data":[{"id":"m"},{"id":"n"}]}`, func(o client.Options) (any, error) { return openai.New(o) }},
		{"compatible", "/v1/models", `{"data":[{"id":"m"},{"id":"n"}]}`, func(o client.Options) (any, error) { return openai.NewCompatible(o) }},
		{"azure", "/v1/openai/models", `{"data":[{"id":"m"},{"id":"n"}]}`, func(o client.Options) (any, error) { return openai.NewAzure(o) }},
		{"anthropic", "/v1/models", `{"data":[{"id":"m"},{"id":"n"}]}`, func(o client.Options) (any, error) { return anthropic.New(o) }},
		{"gemini", "/v1/models", `{"models":[{"name":"models/m"},{"name":"models/n"}]}`, func(o client.Options) (any, error) { return gemini.New(o) }},
		{"cohere", "/v1/models", `{"models":[{"name":"m"},{"name":"n"}]}`, func(o client.Options) (any, error) { return cohere.New(o) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := wiretest.New(t, wiretest.Options{})
			s.Route("GET "+tt.path, wiretest.Body("application/json", tt.body))
			base := strings.TrimSuffix(s.URL(), "/") + "/v1"
			if tt.name == "cohere" {
				base = strings.TrimSuffix(base, "/v1") + "/v2"
			}
			made, err := tt.create(client.Options{Name: tt.name, APIBase: base, APIKey: wiretest.Key("sk-secret")})
			if err != nil {
				t.Fatal(err)
			}
			names, err := made.(provider.Lister).ListModels(t.Context())
			if err != nil || !slices.Equal(names, []string{"m", "n"}) {
				t.Fatalf("%v, %v", names, err)
			}
			s.Route("GET "+tt.path, wiretest.Status(401, `{"error":{"message":"wrong key sk-secret"}}`))
			_, err = made.(provider.Lister).ListModels(t.Context())
			if provider.KindOf(err) != provider.Authentication || strings.Contains(err.Error(), "sk-secret") {
				t.Errorf("error = %v", err)
			}
			s.Route("GET "+tt.path, wiretest.Body("text/html", "<html>"))
			if _, err = made.(provider.Lister).ListModels(t.Context()); provider.KindOf(err) != provider.BadReply {
				t.Errorf("error = %v", err)
			}
		})
	}
}
