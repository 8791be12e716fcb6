package config

import "slices"

// Platform is a server that speaks the OpenAI protocol and is known by name: a
// client of type openai-compatible that is called so needs no api_base.
type Platform struct {
	Name    string
	APIBase string // may hold {PLACEHOLDER}s, which the user has to replace
	Former  string // an address that answers no more; the present one is used instead of it
	API     string // the setting api of its clients, if they have none: "responses", or empty
	NoChat  bool   // has models for embeddings and reranking only
	Local   bool   // runs on the user's own machine and needs no key
	Base    Base   // of the platform's own programs
}

var platforms = []Platform{
	{Name: "ai21", APIBase: "https://api.ai21.com/studio/v1"},
	{Name: "cloudflare", APIBase: "https://api.cloudflare.com/client/v4/accounts/{ACCOUNT_ID}/ai/v1"},
	{Name: "deepinfra", APIBase: "https://api.deepinfra.com/v1/openai"},
	{Name: "deepseek", APIBase: "https://api.deepseek.com"},
	{Name: "ernie", APIBase: "https://qianfan.baidubce.com/v2"},
	{Name: "github", APIBase: "https://models.github.ai/inference", Former: "https://models.inference.ai.azure.com"},
	{Name: "groq", APIBase: "https://api.groq.com/openai/v1", Base: Base{"GROQ_BASE_URL", "/openai/v1"}},
	{Name: "hunyuan", APIBase: "https://api.hunyuan.cloud.tencent.com/v1"},
	{Name: "minimax", APIBase: "https://api.minimax.chat/v1"},
	{Name: "mistral", APIBase: "https://api.mistral.ai/v1"},
	{Name: "moonshot", APIBase: "https://api.moonshot.cn/v1"},
	{Name: "openrouter", APIBase: "https://openrouter.ai/api/v1"},
	{Name: "perplexity", APIBase: "https://api.perplexity.ai/v1", API: "responses", Former: "https://api.perplexity.ai"},
	{Name: "qianwen", APIBase: "https://dashscope.aliyuncs.com/compatible-mode/v1"},
	{Name: "xai", APIBase: "https://api.x.ai/v1"},
	{Name: "zhipuai", APIBase: "https://open.bigmodel.cn/api/paas/v4"},
	{Name: "jina", APIBase: "https://api.jina.ai/v1", NoChat: true},
	{Name: "voyageai", APIBase: "https://api.voyageai.com/v1", NoChat: true},

	// The usual ports of the servers that people run at home.
	{Name: "ollama", APIBase: "http://localhost:11434/v1", Local: true},
	{Name: "llamacpp", APIBase: "http://localhost:8080/v1", Local: true},
	{Name: "lmstudio", APIBase: "http://localhost:1234/v1", Local: true},
	{Name: "vllm", APIBase: "http://localhost:8000/v1", Local: true},
}

// Platforms returns the known platforms, local ones last.
func Platforms() []Platform { return slices.Clone(platforms) }

func platform(name string) (Platform, bool) {
	i := slices.IndexFunc(platforms, func(p Platform) bool { return p.Name == name })
	if i < 0 {
		return Platform{}, false
	}
	return platforms[i], true
}
