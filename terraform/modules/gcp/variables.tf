variable "name" {
  description = "Name of the installation; all that is made begins with it."
  type        = string
  default     = "bellhop"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{2,19}[a-z0-9]$", var.name))
    error_message = "The name has 4 to 21 lower-case letters, digits and hyphens, begins with a letter and ends with none of the hyphens."
  }

  validation {
    condition     = !startswith(var.name, "goog") && !strcontains(var.name, "google")
    error_message = "Google takes no names of its own for topics and buckets: those that begin with goog or have google in them."
  }
}

variable "labels" {
  description = "Labels of all that is made."
  type        = map(string)
  default     = {}
}

variable "packages" {
  description = "Folder with the functions' packages, as `make package` fills it. A plan and a destroy need none of its files."
  type        = string
}

variable "cel" {
  description = "Whether sources and checks may have rules in CEL (`evaluateCEL`): its runtime, 6 MB, is then in the packages of deploy and evaluate, and of charts if there is one."
  type        = bool
  default     = false
}

variable "charts" {
  description = "Whether profiles may deploy Helm charts and kustomizations: a function `charts` with Helm and kubectl in its package, and its topic."
  type        = bool
  default     = false
}

variable "settings" {
  description = "Bellhop's settings by their names in lower case, such as `{ sweep_interval = 600 }`."
  type        = map(string)
  default     = {}

  validation {
    condition     = length(setsubtract(keys(var.settings), local.known_settings)) == 0
    error_message = "There is no such setting: ${join(", ", setsubtract(keys(var.settings), local.known_settings))}."
  }

  validation {
    condition = alltrue([
      for name, value in var.settings : contains(["adopt", "egress_allow", "forwarder_image", "mirrors", "report_inbox"], name) || can(tonumber(value))
    ])
    error_message = "Every setting but adopt, egress_allow, forwarder_image, mirrors and report_inbox is a number."
  }

  validation {
    condition = alltrue([
      for each in split(",", lookup(var.settings, "egress_allow", "public")) :
      can(cidrhost(trimspace(each), 0)) || can(regex("^(\\*\\.)?[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$", trimspace(each)))
    ])
    error_message = "The setting egress_allow has hosts, such as charts.example.com or *.example.com, ranges of addresses, such as 203.0.113.0/24, or public, with commas between."
  }

  # A function that reads a value which it cannot use fails at every start.
  validation {
    condition = alltrue([
      for name, value in var.settings : try(tonumber(value) > 0 || (tonumber(value) == 0 && contains(local.may_be_zero, name)), true)
    ])
    error_message = "Every setting but adopt, egress_allow, forwarder_image, mirrors and report_inbox is above zero; only ${join(", ", local.may_be_zero)} may be zero."
  }

  # Pub/Sub counts to 100, and each attempt twice: both modules have one bound.
  validation {
    condition     = contains(range(1, 51), try(tonumber(lookup(var.settings, "attempts", "12")), 12))
    error_message = "A message is tried 1 to 50 times (attempts): 50 take three quarters of an hour, and more only delay the dead letter that says why."
  }

  validation {
    condition     = contains(["asked", "always"], lookup(var.settings, "adopt", "asked"))
    error_message = "The setting adopt is asked or always."
  }
}

variable "functions" {
  description = "By stage (`ingest`, `evaluate`, `deploy`, `sweep`, `schedule`, and `charts` if there is one): memory in MiB, time-out in seconds, how many requests or messages an instance takes at once, how many instances there may be, and how many are kept warm."
  type = map(object({
    memory      = optional(number)
    timeout     = optional(number)
    concurrency = optional(number)
    instances   = optional(number)
    warm        = optional(number)
  }))
  default = {}

  validation {
    condition     = length(setsubtract(keys(var.functions), keys(local.stages))) == 0
    error_message = "There is no such stage: ${join(", ", setsubtract(keys(var.functions), keys(local.stages)))}."
  }

  validation {
    condition     = alltrue([for each in var.functions : coalesce(each.timeout, 10) >= 10 && coalesce(each.timeout, 10) <= 600])
    error_message = "A function's time-out has 10 to 600 seconds: for so long Pub/Sub waits for an answer."
  }

  validation {
    condition     = alltrue([for each in var.functions : coalesce(each.memory, 512) >= 512])
    error_message = "A function with a whole processor has at least 512 MiB."
  }
}

variable "instances" {
  description = "How many instances, of one processor each, all functions together may have: Cloud Run's quota of processors in this project and region, as far as Bellhop may use it. New projects have 20."
  type        = number
  default     = 10

  validation {
    condition     = var.instances >= 10 && floor(var.instances) == var.instances
    error_message = "The number of instances is a whole number, and 10 at least."
  }
}

variable "network" {
  description = "Network and subnetwork for the functions that call API servers, where those are private, by their names or ids; null for none. With `all_traffic` calls to public addresses go through it, too."
  type = object({
    network     = string
    subnetwork  = string
    tags        = optional(list(string), [])
    all_traffic = optional(bool, false)
  })
  default = null
}

variable "gke_clusters" {
  description = "Ids of the GKE clusters that may be registered without a kubeconfig; one may end in `*`, for all that begin so."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for each in var.gke_clusters : can(regex("^projects/[a-z0-9-]+/locations/[a-z0-9/-]*[a-z0-9*]$", each))])
    error_message = "Each is the id of a GKE cluster, projects/PROJECT/locations/LOCATION/clusters/NAME, or its beginning and a *."
  }

  validation {
    condition     = length(var.gke_clusters) <= 20
    error_message = "IAM takes twenty conditions for one account and role: say more of them in one, by a *."
  }
}

variable "configuration_cluster" {
  description = "Whether the function sweep may store and delete kubeconfigs, which SveltosClusters of the cluster that holds the configuration need. Without it only people register clusters that have a kubeconfig."
  type        = bool
  default     = false
  nullable    = false
}

variable "operators" {
  description = "Principals who may run all commands, such as `group:NAME@DOMAIN`: they are granted what is this installation's, by its names."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for each in var.operators : can(regex("^(user|group|serviceAccount|principal|principalSet):.+$", each))])
    error_message = "Each is a principal, such as user:NAME@DOMAIN or group:NAME@DOMAIN."
  }
}

variable "readers" {
  description = "Principals who may run the commands that look: they change nothing, and read no kubeconfig."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for each in var.readers : can(regex("^(user|group|serviceAccount|principal|principalSet):.+$", each))])
    error_message = "Each is a principal, such as user:NAME@DOMAIN or group:NAME@DOMAIN."
  }
}

variable "kms_key" {
  description = "Key of Cloud KMS in the installation's region that encrypts database, topics, buckets, functions, images, log lines and sealing key, set at the first apply; null for Google's own keys. Its name must be known when Terraform plans."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key == null || can(regex("^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$", var.kms_key))
    error_message = "The key is named projects/PROJECT/locations/REGION/keyRings/RING/cryptoKeys/KEY."
  }
}

variable "secret_replication" {
  description = "Where Secret Manager keeps the sealing key and clusters' credentials, said with the first apply: `automatic` (wherever Google does) or `regional` (only in the installation's region); null for `regional` with a `kms_key`, else `automatic`."
  type        = string
  default     = null

  validation {
    condition     = var.secret_replication == null || contains(["automatic", "regional"], coalesce(var.secret_replication, "automatic"))
    error_message = "Secrets are kept automatic or regional."
  }

  validation {
    condition     = var.secret_replication != "automatic" || var.kms_key == null
    error_message = "The key of one region seals no secret that is kept in all: say regional, or nothing."
  }
}

variable "ingest_allow" {
  description = "Address ranges, in CIDR notation, from which clusters may send events; empty for any."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for each in var.ingest_allow : can(cidrhost(each, 0))])
    error_message = "Each is a range of addresses in CIDR notation, such as 203.0.113.0/24."
  }

  validation {
    condition     = length(join(",", var.ingest_allow)) <= 1500
    error_message = "The ranges have 1,500 characters at most together, which is about 80, as on AWS: each request is compared with all of them. Join ranges that are neighbours, or put a load balancer with Cloud Armor before ingest."
  }

  validation {
    condition     = length(var.ingest_allow) == 0 || var.ingest_from == "anywhere"
    error_message = "Behind a load balancer, or in a network, senders' addresses are for its own rules: leave ingest_allow empty."
  }
}

variable "ingest_from" {
  description = "Where ingest accepts calls from: `anywhere`, `balancer` (a load balancer of yours, which may have Cloud Armor, and networks of the project), or `network` (only networks of the project)."
  type        = string
  default     = "anywhere"

  validation {
    condition     = contains(["anywhere", "balancer", "network"], var.ingest_from)
    error_message = "Ingest is called from anywhere, balancer or network."
  }
}

variable "ingest_invokers" {
  description = "Principals that Cloud Run's own check lets through to ingest, before Bellhop checks their token; empty to turn this check off: see below."
  type        = set(string)
  default     = []

  validation {
    condition     = alltrue([for each in var.ingest_invokers : can(regex("^(allUsers|[a-zA-Z]+:.+)$", each))])
    error_message = "Each is allUsers, or a principal such as serviceAccount:NAME@PROJECT.iam.gserviceaccount.com."
  }
}

variable "event_rules" {
  description = "By a name of your choice: which events of Google, by the attributes that Eventarc's `matching` asks for (`type` always; in a value `*` stands for a part of a path) in a `location`, the installation's if none is said, count as CloudEvents of which registered `cluster`."
  type = map(object({
    cluster  = string
    matching = map(string)
    location = optional(string)
  }))
  default = {}

  validation {
    condition     = alltrue([for each in var.event_rules : can(regex("^[a-z0-9]([a-z0-9-]*[a-z0-9])?/[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", each.cluster))])
    error_message = "A cluster is named as it was registered, NAMESPACE/NAME."
  }

  validation {
    condition     = alltrue([for each in var.event_rules : contains(keys(each.matching), "type")])
    error_message = "Eventarc asks for the type of the events, such as google.cloud.storage.object.v1.finalized."
  }

  validation {
    condition     = alltrue([for name in keys(var.event_rules) : can(regex("^[a-z0-9][a-z0-9-]{0,30}$", name))])
    error_message = "A rule's name has up to 31 lower-case letters, digits and hyphens."
  }
}

variable "log_retention_days" {
  description = "How long log lines are kept, in days; other than 30, in a log bucket of the installation's own."
  type        = number
  default     = 30

  validation {
    condition     = var.log_retention_days >= 1 && var.log_retention_days <= 3650
    error_message = "Cloud Logging keeps lines for 1 to 3650 days."
  }
}

variable "recovery_days" {
  description = "For how long a day's backup of the records, and what was deleted from the bucket, can be had back, in days."
  type        = number
  default     = 30

  validation {
    condition     = var.recovery_days >= 7 && var.recovery_days <= 98
    error_message = "Backups can be had back for 7 to 98 days."
  }
}

variable "database" {
  description = "Name of the Firestore database, where it was restored or cloned and imported; null for `name`. The page about backups has the steps."
  type        = string
  default     = null

  validation {
    condition     = var.database == null || can(regex("^[a-z][a-z0-9-]{2,61}[a-z0-9]$", var.database))
    error_message = "The database's name has 4 to 63 lower-case letters, digits and hyphens, begins with a letter and ends with none of the hyphens."
  }
}

variable "deletion_protection" {
  description = "Whether Firestore refuses to delete the database."
  type        = bool
  default     = false
}

variable "destroy_with_clusters" {
  description = "Whether `terraform destroy` goes ahead while clusters are registered; apply it before."
  type        = bool
  default     = false
}

variable "alarms" {
  description = "Whether to watch for dead letters, old messages, errors, throttles, missed events, lost clusters, credentials that expire, failing steps, held deletions, stalled promotions, refused requests, slow events and a schedule that does not tick."
  type        = bool
  default     = true
}

variable "notifications" {
  description = "Targets of alarms, and of their end: names of notification channels, projects/PROJECT/notificationChannels/NUMBER."
  type        = set(string)
  default     = []
}

variable "monthly_budget" {
  description = "How much the project may cost a month, in the currency of its `billing_account`, before `notifications` hear of it, and of a forecast; none by default. Applying it needs the permission to create budgets of the billing account."
  type = object({
    billing_account = string
    amount          = number
  })
  default = null

  validation {
    condition     = var.monthly_budget == null ? true : var.monthly_budget.amount > 0 && floor(var.monthly_budget.amount) == var.monthly_budget.amount
    error_message = "A budget is a whole number above zero."
  }
}

variable "oldest_message_minutes" {
  description = "How old the oldest message, and the oldest pending work, may be before an alarm, in minutes."
  type        = number
  default     = 30

  validation {
    condition     = var.oldest_message_minutes >= 5
    error_message = "A message may take at least five minutes, since Cloud Monitoring looks at five together."
  }
}

variable "dashboard" {
  description = "Whether to make a dashboard, and to save queries of the logs."
  type        = bool
  default     = true
}
