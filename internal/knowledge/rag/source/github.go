package source

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"

	"loki/internal/base/fault"
)

// The addresses of GitHub.
const (
	gitHubAPI = "https://api.github.com"
	gitHubRaw = "https://raw.githubusercontent.com"
)

// github sets what is particular about the pages of GitHub. It yields the Markdown files of a directory in a
// repository itself: done is true.
func (c *crawl) github(ctx context.Context, u *url.URL) (done bool, err error) {
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	switch {
	case len(parts) >= 4 && parts[2] == "tree":
		c.exclude = []string{"changelog", "changes", "license"}
		return true, c.gitHubTree(ctx, parts[0]+"/"+parts[1], parts[3], strings.Join(parts[4:], "/"))
	case len(parts) >= 3 && parts[2] == "wiki":
		c.exclude, c.extract = []string{"_history"}, "wiki-body"
	}
	return false, nil
}

// gitHubTree yields the Markdown files below dir on a branch of a repository.
func (c *crawl) gitHubTree(ctx context.Context, repo, branch, dir string) error {
	var head struct {
		Commit struct{ SHA string }
	}
	if err := c.askGitHub(ctx, fmt.Sprintf("/repos/%s/branches/%s", repo, url.PathEscape(branch)), &head); err != nil {
		return err
	}
	var list struct {
		Tree []struct {
			Path, Type string
		}
		Truncated bool
	}
	if err := c.askGitHub(ctx, fmt.Sprintf("/repos/%s/git/trees/%s?recursive=1", repo, url.PathEscape(head.Commit.SHA)), &list); err != nil {
		return err
	}
	if head.Commit.SHA == "" || list.Tree == nil {
		return fault.New(fault.Tool, "the reply of GitHub about branch %s of %s is not what was expected", branch, repo)
	}
	pages := 0
	for _, f := range list.Tree {
		if f.Type != "blob" || !strings.EqualFold(path.Ext(f.Path), ".md") || c.excluded(f.Path) || dir != "" && !strings.HasPrefix(f.Path, dir+"/") {
			continue
		}
		if pages++; pages > c.maxPages() {
			c.fail("", fault.New(fault.Limit, "%s: it has more than %d pages, and the others were left out", c.source, pages-1).
				WithHint("clone the repository: git+https://github.com/%s#%s:%s", repo, branch, dir))
			return nil
		}
		file := (&url.URL{Path: f.Path}).EscapedPath()
		raw := fmt.Sprintf("%s/%s/%s/%s", cmp.Or(c.GitHubRaw, gitHubRaw), repo, head.Commit.SHA, file)
		if !c.found(fmt.Sprintf("https://github.com/%s/blob/%s/%s", repo, branch, file), func(ctx context.Context) (*Content, error) {
			p, err := c.get(ctx, nil, &c.pace, raw)
			if err != nil {
				return nil, err
			}
			text, err := p.Text()
			return asText(hashOf(p.Data), text, "md", false), err
		}) {
			return nil
		}
	}
	if list.Truncated {
		c.fail("", fault.New(fault.Limit, "%s: GitHub does not list all files of a repository of this size", c.source).
			WithHint("clone it: git+https://github.com/%s#%s:%s", repo, branch, dir))
	}
	return nil
}

// askGitHub reads a reply of the API.
func (c *crawl) askGitHub(ctx context.Context, path string, reply any) error {
	p, err := c.get(ctx, nil, &c.pace, cmp.Or(c.GitHub, gitHubAPI)+path, "Accept", "application/vnd.github+json", "X-GitHub-Api-Version", "2022-11-28")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(p.Data, reply); err != nil {
		return fault.Wrap(fault.Tool, err, "the reply of GitHub is malformed")
	}
	return nil
}
