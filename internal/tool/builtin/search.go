package builtin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"loki/internal/tool"
)

type queryArgs struct {
	Query string `json:"query"`
}

// searchTool returns a tool for a search function.
func searchTool(name, description string, search func(ctx context.Context, query string) (string, error)) tool.Tool {
	params := []param{{name: "query", kind: "string", description: "What to search for."}}
	return &native{
		name:        name,
		description: description,
		params:      params,
		hints:       tool.Hints{ReadOnly: true, Timeout: serviceTimeout},
		run: function(params, func(ctx context.Context, args queryArgs, _ tool.Call) (string, error) {
			return search(ctx, strings.TrimSpace(args.Query))
		}),
	}
}

func (b *base) searchArxiv() tool.Tool {
	return searchTool("search_arxiv", "Search arXiv for scientific papers and return the top ones.", func(ctx context.Context, query string) (string, error) {
		most := cmp.Or(b.Getenv("ARXIV_MAX_RESULTS"), "3")
		if n, err := strconv.Atoi(most); err != nil || n < 1 {
			return "", fmt.Errorf("the user has set ARXIV_MAX_RESULTS to %q, which is not a number above 0", most)
		}
		q := url.Values{"search_query": {"all:" + query}, "max_results": {most}}
		data, err := b.do(ctx, request{service: "arXiv", url: cmp.Or(b.Services.Arxiv, "https://export.arxiv.org") + "/api/query?" + q.Encode()})
		return string(data), err
	})
}

func (b *base) searchWikipedia() tool.Tool {
	description := "Search Wikipedia and return the introduction of the article that fits best. " +
		"Use it for detailed information about a public figure, a scientific concept, a historical event, and the like."
	return searchTool("search_wikipedia", description, b.wikipedia)
}

func (b *base) wikipedia(ctx context.Context, query string) (string, error) {
	base := cmp.Or(b.Services.Wikipedia, "https://en.wikipedia.org")
	ask := func(q url.Values) request {
		q.Set("action", "query")
		q.Set("format", "json")
		q.Set("formatversion", "2")
		return request{service: "Wikipedia", url: base + "/w/api.php?" + q.Encode()}
	}
	hits, err := reply[struct {
		Query struct {
			Search []struct {
				Title  string `json:"title"`
				PageID int64  `json:"pageid"`
			} `json:"search"`
		} `json:"query"`
	}](ctx, b, ask(url.Values{"list": {"search"}, "srlimit": {"1"}, "srsearch": {query}}))
	switch {
	case err != nil:
		return "", err
	case len(hits.Query.Search) == 0:
		return "", fmt.Errorf("no article about %q exists on Wikipedia", query)
	}
	hit := hits.Query.Search[0]
	pages, err := reply[struct {
		Query struct {
			Pages []struct {
				Extract string `json:"extract"`
			} `json:"pages"`
		} `json:"query"`
	}](ctx, b, ask(url.Values{"prop": {"extracts"}, "explaintext": {"1"}, "exintro": {"1"}, "pageids": {strconv.FormatInt(hit.PageID, 10)}}))
	switch {
	case err != nil:
		return "", err
	case len(pages.Query.Pages) == 0 || strings.TrimSpace(pages.Query.Pages[0].Extract) == "":
		return "", fmt.Errorf("the article %q of Wikipedia has no introduction", hit.Title)
	}
	return fmt.Sprintf("%s\n\n%s\n\n%s/wiki/%s\n", hit.Title, strings.TrimSpace(pages.Query.Pages[0].Extract), base, url.PathEscape(strings.ReplaceAll(hit.Title, " ", "_"))), nil
}

func (b *base) searchWolfram() tool.Tool {
	description := "Get an answer to a question using Wolfram Alpha. The query should be in English. " +
		"Use it for questions that require computation, detailed facts or data analysis."
	return searchTool("search_wolframalpha", description, func(ctx context.Context, query string) (string, error) {
		id, err := b.need("WOLFRAM_API_ID")
		if err != nil {
			return "", err
		}
		q := url.Values{"appid": id, "input": {query}, "output": {"json"}, "format": {"plaintext"}}
		answer, err := reply[struct {
			Result struct {
				Pods []struct {
					Title   string `json:"title"`
					Subpods []struct {
						Text string `json:"plaintext"`
					} `json:"subpods"`
				} `json:"pods"`
			} `json:"queryresult"`
		}](ctx, b, request{service: "Wolfram Alpha", url: cmp.Or(b.Services.Wolfram, "https://api.wolframalpha.com") + "/v2/query?" + q.Encode(), secrets: id})
		if err != nil {
			return "", err
		}
		type pod struct {
			Title  string   `json:"title"`
			Values []string `json:"values"`
		}
		var pods []pod
		for _, p := range answer.Result.Pods {
			one := pod{Title: p.Title}
			for _, s := range p.Subpods {
				if s.Text != "" {
					one.Values = append(one.Values, s.Text)
				}
			}
			if len(one.Values) > 0 {
				pods = append(pods, one)
			}
		}
		if len(pods) == 0 {
			return "", errors.New("the question was not understood by Wolfram Alpha; word it in a simpler way")
		}
		return pretty(pods)
	})
}

const webSearch = " Use this when you need current information, or feel that a search could provide a better answer."

func (b *base) webSearchLoki() tool.Tool {
	return searchTool("web_search_loki", "Perform a web search with a model that can search."+webSearch, func(ctx context.Context, query string) (string, error) {
		if b.Ask == nil {
			return "", errors.New("no search model is available")
		}
		return b.Ask(ctx, cmp.Or(b.Getenv("WEB_SEARCH_MODEL"), "gemini:gemini-3.5-flash-lite"), query)
	})
}

func (b *base) webSearchPerplexity() tool.Tool {
	return searchTool("web_search_perplexity", "Perform a web search using Perplexity."+webSearch, func(ctx context.Context, query string) (string, error) {
		key, err := b.need("PERPLEXITY_API_KEY")
		if err != nil {
			return "", err
		}
		// The Agent API answers in the format of OpenAI's responses; its presets search. Source:
		// docs.perplexity.ai/docs/agent-api/migrate-from-sonar, November 2026.
		answer, err := reply[struct {
			Output []struct {
				Content []struct {
					Text string `json:"text"`
				} `json:"content"`
			} `json:"output"`
		}](ctx, b, request{
			service: "Perplexity",
			method:  "POST",
			url:     cmp.Or(b.Services.Perplexity, "https://api.perplexity.ai") + "/v1/responses",
			header:  map[string]string{"Authorization": "Bearer " + key[0]},
			body: map[string]any{
				"model":  cmp.Or(b.Getenv("PERPLEXITY_WEB_SEARCH_MODEL"), "perplexity/sonar"),
				"preset": "fast",
				"input":  query,
			},
			secrets: key,
		})
		if err != nil {
			return "", err
		}
		var text strings.Builder
		for _, item := range answer.Output {
			for _, c := range item.Content {
				text.WriteString(c.Text)
			}
		}
		if text.Len() == 0 {
			return "", errors.New("no answer from Perplexity")
		}
		return text.String(), nil
	})
}

func (b *base) webSearchTavily() tool.Tool {
	return searchTool("web_search_tavily", "Perform a web search using Tavily."+webSearch, func(ctx context.Context, query string) (string, error) {
		key, err := b.need("TAVILY_API_KEY")
		if err != nil {
			return "", err
		}
		answer, err := reply[struct {
			Answer string `json:"answer"`
		}](ctx, b, request{
			service: "Tavily",
			method:  "POST",
			url:     cmp.Or(b.Services.Tavily, "https://api.tavily.com") + "/search",
			header:  map[string]string{"Authorization": "Bearer " + key[0]},
			body:    map[string]any{"query": query, "include_answer": true},
			secrets: key,
		})
		switch {
		case err != nil:
			return "", err
		case answer.Answer == "":
			return "", errors.New("no answer from Tavily")
		}
		return answer.Answer, nil
	})
}
