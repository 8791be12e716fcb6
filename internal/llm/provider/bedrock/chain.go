package bedrock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go"

	"loki/internal/llm/provider"
	"loki/internal/llm/provider/wire"
)

// chainTimeout is how long a server that issues credentials may think.
const chainTimeout = 30 * time.Second

// fromChain returns region and credentials of the SDK's chain: profile, web identity,
// container, machine. A region that is given stays.
//
// Credentials that expire are kept, and so is what renews them. Others are those of a
// file, which may change between two requests.
func (s *source) fromChain(ctx context.Context, region string) (string, aws.Credentials, error) {
	for {
		cfg, fresh, err := s.chain(ctx, region)
		if err != nil {
			return "", aws.Credentials{}, s.failure(ctx, nil, err)
		}
		keys, err := cfg.Credentials.Retrieve(ctx)
		if err == nil && keys.CanExpire {
			return cfg.Region, keys, nil
		}
		s.forget(cfg)
		if err == nil {
			return cfg.Region, keys, nil
		}
		if fresh || ctx.Err() != nil {
			return "", aws.Credentials{}, s.failure(ctx, cfg, err)
		}
	}
}

// chain returns the SDK's configuration, and whether it has just been read.
func (s *source) chain(ctx context.Context, region string) (cfg *aws.Config, fresh bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept != nil {
		return s.kept, false, nil
	}
	configFile, credentialsFile, err := s.files()
	if err != nil {
		return nil, false, err
	}
	read, err := config.LoadDefaultConfig(
		ctx,
		config.WithRegion(region),
		config.WithSharedConfigProfile(s.profile()),
		config.WithSharedConfigFiles(configFile),
		config.WithSharedCredentialsFiles(credentialsFile),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.Proxy, t.ResponseHeaderTimeout = s.proxy, chainTimeout
		})),
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		config.WithEC2RoleCredentialOptions(func(o *ec2rolecreds.Options) { o.Client = s.metadata() }),
	)
	if err != nil {
		return nil, false, err
	}
	s.kept = &read
	return s.kept, true, nil
}

// forget makes the next request read the chain anew.
func (s *source) forget(cfg *aws.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == cfg {
		s.kept = nil
	}
}

// profile returns the name of the chosen profile, empty for the default one.
func (s *source) profile() string {
	return cmp.Or(s.getenv("AWS_PROFILE"), s.getenv("AWS_DEFAULT_PROFILE"))
}

// profileRegion returns the region of the chosen profile, empty if there is none.
func (s *source) profileRegion(ctx context.Context) (string, error) {
	configFile, credentialsFile, err := s.files()
	if err != nil {
		return "", s.failure(ctx, nil, err)
	}
	p, err := config.LoadSharedConfigProfile(ctx, cmp.Or(s.profile(), "default"), func(o *config.LoadSharedConfigOptions) {
		o.ConfigFiles, o.CredentialsFiles = configFile, credentialsFile
	})
	if _, ok := errors.AsType[config.SharedConfigProfileNotExistError](err); ok {
		return "", nil
	}
	if err != nil {
		return "", s.failure(ctx, nil, err)
	}
	return p.Region, nil
}

// files returns the files of profiles, as lists of one. The SDK takes a file that it cannot
// read for an empty one, so that is an error here.
func (s *source) files() (configFile, credentialsFile []string, err error) {
	home := cmp.Or(s.getenv("HOME"), s.getenv("USERPROFILE"))
	list := func(variable, name string) []string {
		path := s.getenv(variable)
		if path == "" && home != "" {
			path = filepath.Join(home, ".aws", name)
		}
		if path == "" {
			return []string{} // nil would be the SDK's own choice
		}
		if _, failed := os.ReadFile(path); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = failed
		}
		return []string{path}
	}
	configFile, credentialsFile = list("AWS_CONFIG_FILE", "config"), list("AWS_SHARED_CREDENTIALS_FILE", "credentials")
	return configFile, credentialsFile, err
}

// errNoMachine reports that the machine gives no credentials: mostly it is not one of AWS.
var errNoMachine = errors.New("no credentials of an EC2 machine")

// machine is the client of a machine's metadata service. Its failures are [errNoMachine].
type machine struct{ *imds.Client }

// metadata returns the client for this machine. It asks once, and never through a proxy: the answer is a
// secret of this machine.
func (s *source) metadata() machine {
	o := imds.Options{
		Retryer:    aws.NopRetryer{},
		HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.Proxy = nil }),
		Endpoint:   s.getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT"),
	}
	if strings.EqualFold(s.getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		o.ClientEnableState = imds.ClientDisabled
	}
	return machine{imds.New(o)}
}

// GetMetadata implements [ec2rolecreds.GetMetadataAPIClient].
func (m machine) GetMetadata(ctx context.Context, in *imds.GetMetadataInput, o ...func(*imds.Options)) (*imds.GetMetadataOutput, error) {
	out, err := m.Client.GetMetadata(ctx, in, o...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoMachine, err)
	}
	return out, nil
}

// failure returns the error for a chain that gives no credentials. cfg is nil if it cannot
// even be read.
func (s *source) failure(ctx context.Context, cfg *aws.Config, err error) error {
	doing := "credentials of client " + s.client
	if ctx.Err() != nil {
		return wire.Failure(ctx, doing, ctx.Err())
	}
	none := "has no credentials: set " + s.variable("ACCESS_KEY_ID") + " and " + s.variable("SECRET_ACCESS_KEY") +
		", or access_key_id and secret_access_key in its configuration"
	if e, ok := errors.AsType[config.SharedConfigProfileNotExistError](err); ok {
		return s.missingError(none + "; the profile " + e.Profile + " does not exist")
	}
	if errors.Is(err, errNoMachine) {
		return s.missingError(none)
	}
	if e, ok := errors.AsType[*processcreds.ProviderError](err); ok {
		// Its text may hold what the command has printed, its cause does not.
		return &provider.Error{Kind: provider.Authentication, Msg: doing + ": credential_process", Err: cmp.Or(errors.Unwrap(e.Err), e.Err)}
	}
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		if kind, known := exceptionKind(e.ErrorCode()); known && kind != provider.Authentication {
			return &provider.Error{Kind: kind, Msg: doing, Err: cause(err)}
		}
		err = cause(err)
	} else if _, ok := errors.AsType[*smithy.OperationError](err); ok && !neverSent(err) {
		return wire.Failure(ctx, "getting the "+doing, err)
	}
	if command := login(cfg); command != "" {
		doing += `: run "` + command + " --profile " + cmp.Or(s.profile(), "default") + `"`
	}
	return &provider.Error{Kind: provider.Authentication, Msg: doing, Err: err}
}

// login returns the command that renews the login which the credentials of cfg come from,
// empty if they come from another place. A nil cfg has none.
func login(cfg *aws.Config) string {
	if cfg == nil {
		return ""
	}
	chain, ok := cfg.Credentials.(*aws.CredentialsCache)
	if !ok {
		return ""
	}
	for _, source := range chain.ProviderSources() {
		switch source {
		case aws.CredentialSourceSSO, aws.CredentialSourceSSOLegacy:
			return "aws sso login"
		case aws.CredentialSourceLogin:
			return "aws login"
		}
	}
	return ""
}
