{{- define "rkgrade.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}{{- end -}}
{{- end -}}
{{- end -}}

{{- define "rkgrade.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "rkgrade.labels" -}}
{{ include "rkgrade.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- /* Whether problems lie on a volume of the cluster's; empty where they do not. */ -}}
{{- define "rkgrade.volume" -}}
{{- if or (not .Values.store.url) (hasPrefix "file:" .Values.store.url) -}}true{{- end -}}
{{- end -}}

{{- define "rkgrade.claim" -}}
{{- default (printf "%s-problems" (include "rkgrade.fullname" .)) .Values.store.existingClaim -}}
{{- end -}}

{{- /* Variables of the API and the workers alike; the Redis address holds a password and comes from a Secret. */ -}}
{{- define "rkgrade.environment" -}}
{{- $settings := mergeOverwrite (deepCopy .root.Values.settings) .settings -}}
{{- range $name, $value := $settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
- name: RKGRADE_DATA_DIR
  value: /var/lib/rkgrade
- name: RKGRADE_DRAIN_TIMEOUT_S
  value: {{ .drain | quote }}
{{- with .root.Values.store.url }}
- name: RKGRADE_STORE_URL
  value: {{ . }}
{{- end }}
{{- if .root.Values.redis.externalSecret }}
- name: RKGRADE_REDIS_URL
  valueFrom: {secretKeyRef: {name: {{ .root.Values.redis.externalSecret }}, key: url}}
{{- else }}
- name: REDIS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ .root.Values.redis.passwordSecret }}, key: password}}
- name: RKGRADE_REDIS_URL
  value: redis://:$(REDIS_PASSWORD)@{{ include "rkgrade.fullname" .root }}-redis:6379/0
{{- end }}
{{- end -}}

{{- define "rkgrade.image" -}}
{{ .image.repository }}:{{ default .root.Chart.AppVersion .image.tag }}
{{- end -}}

{{- /* What no schema can say of the values. */ -}}
{{- define "rkgrade.check" -}}
{{- if not (or .Values.tokens.existingSecret .Values.tokens.insecureNoToken) -}}
{{- fail "tokens.existingSecret: name the Secret with the clients' tokens (or set tokens.insecureNoToken)" -}}
{{- end -}}
{{- if and (not .Values.redis.enabled) (not .Values.redis.externalSecret) -}}
{{- fail "redis: enable the one of this chart, or name the Secret of another (redis.externalSecret)" -}}
{{- end -}}
{{- if and (not .Values.redis.externalSecret) (not .Values.redis.passwordSecret) -}}
{{- fail "redis.passwordSecret: name the Secret with Redis' password" -}}
{{- end -}}
{{- if and .Values.redis.externalSecret .Values.networkPolicy.enabled (not .Values.redis.externalPeers) -}}
{{- fail "redis.externalPeers: say where that Redis is, or the NetworkPolicy keeps workers from it" -}}
{{- end -}}
{{- $set := list .Values.settings .Values.api.settings .Values.worker.settings -}}
{{- range $set -}}
{{- if hasKey . "RKGRADE_STORE_URL" -}}
{{- fail "settings.RKGRADE_STORE_URL: say it as store.url, which the chart has to know" -}}
{{- end -}}
{{- end -}}
{{- if and (hasPrefix "file:" .Values.store.url) (not (hasPrefix "file:///var/lib/rkgrade/problems" .Values.store.url)) -}}
{{- fail "store.url: the volume is at file:///var/lib/rkgrade/problems; no other directory is shared" -}}
{{- end -}}
{{- if and (not (include "rkgrade.volume" .)) .Values.networkPolicy.enabled (not .Values.store.egress) -}}
{{- fail "store.egress: say where that store is, or the NetworkPolicy keeps the API and workers from it" -}}
{{- end -}}
{{- if and (eq .Values.worker.kind "DaemonSet") (ne .Values.worker.autoscaling.kind "none") -}}
{{- fail "worker.autoscaling.kind: a DaemonSet has as many pods as there are nodes" -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled .Values.tokens.existingSecret (not .Values.metrics.withoutToken) (not .Values.metrics.serviceMonitor.tokenSecret.name) -}}
{{- fail "metrics.serviceMonitor.tokenSecret.name: Prometheus needs a token, too (or set metrics.withoutToken)" -}}
{{- end -}}
{{- end -}}
