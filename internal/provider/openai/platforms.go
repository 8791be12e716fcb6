package openai

import (
	"net/url"
	"slices"
	"strings"

	"loki/internal/fault"
)

// Platform is a known service that speaks the wire format.
type Platform struct {
	Name    string
	BaseURL string // may hold a {PLACEHOLDER} that the user replaces
}

const openAIBase = "https://api.openai.com/v1"

// Platforms returns the known compatible services in alphabetical order, those
// that only embed and rerank last.
func Platforms() []Platform {
	return []Platform{
		{"ai21", "https://api.ai21.com/studio/v1"},
		{"cloudflare", "https://api.cloudflare.com/client/v4/accounts/{ACCOUNT_ID}/ai/v1"},
		{"deepinfra", "https://api.deepinfra.com/v1/openai"},
		{"deepseek", "https://api.deepseek.com"},
		{"ernie", "https://qianfan.baidubce.com/v2"},
		{"github", "https://models.inference.ai.azure.com"},
		{"groq", "https://api.groq.com/openai/v1"},
		{"hunyuan", "https://api.hunyuan.cloud.tencent.com/v1"},
		{"minimax", "https://api.minimax.chat/v1"},
		{"mistral", "https://api.mistral.ai/v1"},
		{"moonshot", "https://api.moonshot.cn/v1"},
		{"openrouter", "https://openrouter.ai/api/v1"},
		{"perplexity", "https://api.perplexity.ai"},
		{"qianwen", "https://dashscope.aliyuncs.com/compatible-mode/v1"},
		{"xai", "https://api.x.ai/v1"},
		{"zhipuai", "https://open.bigmodel.cn/api/paas/v4"},
		{"jina", "https://api.jina.ai/v1"},
		{"voyageai", "https://api.voyageai.com/v1"},
	}
}

// BaseURL returns the base URL of the platform called name.
func BaseURL(name string) (string, bool) {
	all := Platforms()
	i := slices.IndexFunc(all, func(p Platform) bool { return p.Name == name })
	if i < 0 {
		return "", false
	}
	return all[i].BaseURL, true
}

// checkBase returns base without trailing slashes.
func checkBase(client, base string) (string, error) {
	base = strings.TrimRight(strings.TrimSpace(base), "/")
	hint := func(e *fault.Error) error {
		return e.WithHint("set api_base of client %q in the configuration, for example %s", client, openAIBase)
	}
	if base == "" {
		return "", hint(fault.New(fault.Config, "client %q has no api_base", client))
	}
	if open := strings.Index(base, "{"); open >= 0 {
		return "", hint(fault.New(fault.Config, "api_base of client %q still holds the placeholder %s", client, base[open:placeholderEnd(base, open)]))
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", hint(fault.New(fault.Config, "api_base of client %q is not an http or https URL", client))
	}
	return base, nil
}

func placeholderEnd(s string, open int) int {
	if n := strings.Index(s[open:], "}"); n >= 0 {
		return open + n + 1
	}
	return len(s)
}
