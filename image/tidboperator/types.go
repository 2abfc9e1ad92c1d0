package tidboperator

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Resource is what TidbClusters are called in the API.
var Resource = schema.GroupVersionResource{Group: "pingcap.com", Version: "v1alpha1", Resource: "tidbclusters"}

// Kind is the kind of the resource.
const Kind = "TidbCluster"

// cluster is a TidbCluster, as far as the operator reads it.
type cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              spec   `json:"spec"`
	Status            status `json:"status"`
}

type spec struct {
	Version                   string            `json:"version,omitempty"`
	SchedulerName             string            `json:"schedulerName,omitempty"`
	ImagePullPolicy           v1.PullPolicy     `json:"imagePullPolicy,omitempty"`
	Timezone                  string            `json:"timezone,omitempty"`
	StatefulSetUpdateStrategy string            `json:"statefulSetUpdateStrategy,omitempty"`
	NodeSelector              map[string]string `json:"nodeSelector,omitempty"`
	Tolerations               []v1.Toleration   `json:"tolerations,omitempty"`
	PD                        *component        `json:"pd,omitempty"`
	TiKV                      *component        `json:"tikv,omitempty"`
	TiDB                      *component        `json:"tidb,omitempty"`
}

// component is the specification of PD, TiKV or TiDB.
type component struct {
	BaseImage                 string                 `json:"baseImage,omitempty"`
	Version                   *string                `json:"version,omitempty"`
	Replicas                  int32                  `json:"replicas"`
	Requests                  v1.ResourceList        `json:"requests,omitempty"`
	Limits                    v1.ResourceList        `json:"limits,omitempty"`
	StorageClassName          *string                `json:"storageClassName,omitempty"`
	Config                    *config                `json:"config,omitempty"`
	Affinity                  *v1.Affinity           `json:"affinity,omitempty"`
	Tolerations               []v1.Toleration        `json:"tolerations,omitempty"`
	NodeSelector              map[string]string      `json:"nodeSelector,omitempty"`
	Annotations               map[string]string      `json:"annotations,omitempty"`
	Labels                    map[string]string      `json:"labels,omitempty"`
	PodSecurityContext        *v1.PodSecurityContext `json:"podSecurityContext,omitempty"`
	StatefulSetUpdateStrategy string                 `json:"statefulSetUpdateStrategy,omitempty"`
	SchedulerName             string                 `json:"schedulerName,omitempty"`
	PriorityClassName         string                 `json:"priorityClassName,omitempty"`
	Env                       []v1.EnvVar            `json:"env,omitempty"`
	Service                   *serviceSpec           `json:"service,omitempty"`
	MaxFailoverCount          *int32                 `json:"maxFailoverCount,omitempty"`
	// RecoverFailover and Failover, of TiKV, have stores that were added for others go when these are back.
	RecoverFailover bool          `json:"recoverFailover,omitempty"`
	Failover        *failoverSpec `json:"failover,omitempty"`
}

// failoverSpec has the stores of one failover go, once.
type failoverSpec struct {
	RecoverByUID types.UID `json:"recoverByUID,omitempty"`
}

type serviceSpec struct {
	Type        v1.ServiceType    `json:"type,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// config is the text of a configuration file. As an object, it is written as TOML.
type config string

// UnmarshalJSON takes a text or an object.
func (c *config) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*c = config(text)
		return nil
	}
	var object map[string]any
	if err := json.Unmarshal(b, &object); err != nil {
		return err
	}
	var out strings.Builder
	writeTOML(&out, "", object)
	*c = config(out.String())
	return nil
}

// writeTOML writes an object: values first, then tables.
func writeTOML(b *strings.Builder, prefix string, object map[string]any) {
	keys := slices.Sorted(maps.Keys(object))
	for _, k := range keys {
		if _, ok := object[k].(map[string]any); !ok {
			v, _ := json.Marshal(object[k]) // It came from JSON.
			fmt.Fprintf(b, "%s = %s\n", k, v)
		}
	}
	for _, k := range keys {
		if inner, ok := object[k].(map[string]any); ok {
			fmt.Fprintf(b, "[%s%s]\n", prefix, k)
			writeTOML(b, prefix+k+".", inner)
		}
	}
}

// status is what the operator tells of a cluster.
type status struct {
	ClusterID  string       `json:"clusterID,omitempty"`
	PD         *partStatus  `json:"pd,omitempty"`
	TiKV       *partStatus  `json:"tikv,omitempty"`
	TiDB       *partStatus  `json:"tidb,omitempty"`
	Conditions []*condition `json:"conditions,omitempty"`
}

// part is the status of a component, or nil.
func (s *status) part(name string) *partStatus {
	return map[string]*partStatus{pd: s.PD, tikv: s.TiKV, tidb: s.TiDB}[name]
}

type partStatus struct {
	Synced      bool                      `json:"synced"`
	Phase       string                    `json:"phase,omitempty"`
	StatefulSet *appsv1.StatefulSetStatus `json:"statefulSet,omitempty"`
	Members     map[string]member         `json:"members,omitempty"`
	Leader      *member                   `json:"leader,omitempty"`
	Stores      map[string]storeStatus    `json:"stores,omitempty"`
	Image       string                    `json:"image,omitempty"`
	// Who has failed for so long that there is another pod for it.
	FailureMembers map[string]failure `json:"failureMembers,omitempty"`
	FailureStores  map[string]failure `json:"failureStores,omitempty"`
	FailoverUID    types.UID          `json:"failoverUID,omitempty"`
}

type member struct {
	Name      string `json:"name"`
	ID        string `json:"id,omitempty"`
	ClientURL string `json:"clientURL,omitempty"`
	Health    bool   `json:"health"`
	Node      string `json:"node,omitempty"`
	// LastTransitionTime is since when its health is as it is.
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
}

type storeStatus struct {
	ID          string `json:"id"`
	PodName     string `json:"podName"`
	IP          string `json:"ip"`
	LeaderCount int    `json:"leaderCount"`
	State       string `json:"state"`
	// LastTransitionTime is since when its state is as it is.
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
}

type condition struct {
	Type               string             `json:"type"`
	Status             v1.ConditionStatus `json:"status"`
	LastUpdateTime     metav1.Time        `json:"lastUpdateTime,omitempty"`
	LastTransitionTime metav1.Time        `json:"lastTransitionTime,omitempty"`
	Reason             string             `json:"reason,omitempty"`
	Message            string             `json:"message,omitempty"`
}
