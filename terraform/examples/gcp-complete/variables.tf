variable "packages" {
  description = "Folder with the functions' packages, as `make package` fills it."
  type        = string
  default     = "../../../dist/gcp"
}

variable "email" {
  description = "The address that gets alarms."
  type        = string
}

variable "deletion_protection" {
  description = "Whether Firestore refuses to delete the database."
  type        = bool
  default     = true
}

variable "destroy_with_clusters" {
  description = "Whether `terraform destroy` goes ahead while clusters are registered; apply it before."
  type        = bool
  default     = false
}
