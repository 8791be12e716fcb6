package sandbox

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// RunsLater reports whether what is written to a place is executed later by programs that are not confined, and why. The
// path has slashes and may be relative: a name on the list counts in every directory, in any letters' case, with all that is
// below it.
func RunsLater(name string) (reason string, ok bool) {
	name = "/" + strings.ToLower(strings.Trim(path.Clean("/"+name), "/")) + "/"
	i := slices.IndexFunc(laterPlaces, func(p place) bool { return strings.Contains(name, "/"+strings.ToLower(p.path)+"/") })
	if i < 0 {
		return "", false
	}
	return laterPlaces[i].reason, true
}

// dotReason is why a new name with a dot is asked about, or withheld.
const dotReason = "programs find what they run by names with a dot, and this one is not known to be harmless"

// harmlessNames are names with a dot, in lower case, of files that no program runs and that name nothing to run: lists of names,
// versions, examples, results of builds and of tests. Names of settings that can name modules or plugins, such as .prettierrc and .eslintrc, are
// not among them, nor is .env, which some shells read as a script.
var harmlessNames = sync.OnceValue(func() map[string]bool {
	names := make(map[string]bool)
	for name := range strings.FieldsSeq(`.gitkeep .keep .empty .placeholder .mailmap .git-blame-ignore-revs .editorconfig .clang-format .rustfmt.toml .isort.cfg .yamllint .yamllint.yml .yamllint.yaml
		.shellcheckrc .codespellrc .hadolint.yaml .nojekyll .well-known .env.example .env.sample .env.template .env.dist
		.nvmrc .node-version .python-version .ruby-version .java-version .go-version .terraform-version .terraform.lock.hcl
		.tsbuildinfo .hypothesis .coverage .nyc_output .ipynb_checkpoints .next .nuxt .output .svelte-kit .astro .turbo .vite .docusaurus .angular .expo
		.build .stack-work .zig-cache .serverless .aws-sam .ds_store .ropeproject`) {
		names[name] = true
	}
	return names
})

// Withheld is what the names of files end in that a command made where they would run later.
const Withheld = ".withheld"

// isHarmless reports whether a name, in lower case, that begins with a dot is that of something that does not run later. So are
// files of editors and file systems that are there for a moment.
func isHarmless(name string) bool {
	for _, prefix := range []string{".#", ".~", ".nfs", ".fuse_hidden", ".goutputstream-", ".coverage."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	for _, suffix := range []string{"ignore", "cache", ".swp", ".swo", ".swx", ".tmp", ".lock", "~", Withheld} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return harmlessNames()[name]
}

// isRepositoryDir reports whether a name, in lower case, is that of a directory of a version control system: what runs later in it is on the list.
func isRepositoryDir(name string) bool {
	return slices.Contains([]string{".git", ".hg", ".svn", ".jj", ".bzr", ".sl"}, name)
}

// harmlessPlaces are such places in directories whose names are not harmless.
var harmlessPlaces = []string{
	".github/issue_template", ".github/pull_request_template", ".github/pull_request_template.md", ".github/funding.yml", ".github/codeowners",
	".github/readme.md", ".github/contributing.md", ".github/code_of_conduct.md", ".github/security.md", ".github/support.md",
}

// MayRunLater reports whether a new file at a place may be what programs run later, or find that by, since a name with a dot leads
// to it that is not known to be harmless. The path is as for [RunsLater].
func MayRunLater(name string) (reason string, ok bool) {
	name = strings.ToLower(strings.Trim(path.Clean("/"+name), "/"))
	if slices.ContainsFunc(harmlessPlaces, func(p string) bool { return strings.HasPrefix(name+"/", p+"/") }) {
		return "", false
	}
	for part := range strings.SplitSeq(name, "/") {
		if !strings.HasPrefix(part, ".") {
			continue
		}
		if isHarmless(part) {
			return "", false // with all that is in it
		}
		return dotReason, true
	}
	return "", false
}

// MakesRepository reports whether a file below root, both absolute, is a file by which git takes a directory for a
// repository, and runs what its settings name: HEAD, commondir, and what is below a directory that has one of them.
func MakesRepository(root, file string) bool {
	if !contains(root, file) || file == root {
		return false
	}
	for _, name := range []string{"HEAD", "commondir"} {
		if strings.EqualFold(filepath.Base(file), name) {
			return true
		}
		for dir := filepath.Dir(file); contains(root, dir); dir = filepath.Dir(dir) {
			if exists(filepath.Join(dir, name)) {
				return true
			}
			if dir == root {
				break
			}
		}
	}
	return false
}

// ClosedBelow reports whether a directory, by its absolute path, has what [ClosedReason] reports somewhere below it.
func ClosedBelow(home, dir string) bool {
	dir = strings.TrimSuffix(dir, string(filepath.Separator)) + string(filepath.Separator)
	return slices.ContainsFunc(closedPlaces, func(p place) bool {
		place := p.path
		if below, ok := strings.CutPrefix(place, "~/"); ok {
			if home == "" {
				return false
			}
			place = filepath.Join(home, below)
		}
		return strings.HasPrefix(place, dir)
	})
}

// ClosedReason reports whether an absolute path leads to what no child below [Full] reads, such as credentials, and why. home is
// the user's home directory, empty if it is not known.
func ClosedReason(home, path string) (reason string, ok bool) {
	for _, p := range closedPlaces {
		place := p.path
		if below, ok := strings.CutPrefix(place, "~/"); ok {
			if home == "" {
				continue
			}
			place = filepath.Join(home, below)
		}
		if path == place || strings.HasPrefix(path, place+string(filepath.Separator)) {
			return p.reason, true
		}
	}
	return "", false
}
