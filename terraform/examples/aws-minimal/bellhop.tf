# All that is needed: where the packages are. `terraform output -json` is for `bellhop context add`.
module "bellhop" {
  source = "../../modules/aws"

  packages = "../../../dist/aws"
}

output "bellhop" {
  description = "The installation, as `bellhop context add NAME --aws -` reads it."
  value       = module.bellhop.bellhop
}
